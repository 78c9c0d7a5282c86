//! Office documents in the Office Open XML format (ECMA-376): text documents, presentations and workbooks.
//!
//! Both are packages: ZIP archives of XML parts that name each other by relationships.

mod block;
mod chart;
mod math;
mod number;
mod package;
mod picture;
mod properties;
mod slides;
mod symbol;
mod text;
mod word;
mod workbook;

pub(crate) use slides::parse as parse_slides;
pub(crate) use word::parse as parse_word;
pub(crate) use workbook::parse as parse_workbook;
