//! Previews of parsing and chunking: what ingestion would make of a document. Nothing is stored.

use super::{call, options_of, required};
use crate::collection::create::check_language;
use crate::document::store::check_size;
use crate::engine;
use crate::error::{Error, Result};
use crate::pg::given_jsonb::GivenJsonb;
use crate::pg::{ErrorReport, principal};
use crate::storage::chunk;
use pgrx::JsonB;
use pgrx::prelude::*;
use rag_core::chunking::ChunkOptions;
use rag_core::document::{ParsedDocument, PreparedDocument};
use rag_core::option::OptionReader;
use rag_core::position::{CharOffsets, pages};
use rag_wire::{Content, Lane, Prepare};
use serde_json::json;
use std::ops::Range;

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn rag_parse(
    content: Option<&[u8]>,
    media_type: Option<&str>,
    options: Option<GivenJsonb>,
) -> std::result::Result<
    TableIterator<
        'static,
        (
            name!(media_type, String),
            name!(title, Option<String>),
            name!(text, String),
            name!(pages, Option<i32>),
            name!(page_starts, Option<Vec<i32>>),
            name!(headings, JsonB),
            name!(metadata, JsonB),
        ),
    >,
    ErrorReport,
> {
    let row = call(|| {
        let content = required(content, "content")?;
        OptionReader::new(&options_of(options)?, "rag_parse")?.finish()?;
        check_size(content.len())?;
        let parsed = engine::parse(
            Content::Bytes(content.to_vec()),
            media_type.map(str::to_owned),
            Lane::Interactive,
            &principal::current_principals()?,
        )?;
        let places = parsed.pages.iter().map(|page| page.offset..page.offset);
        let places: Vec<Range<usize>> =
            parsed.headings.iter().map(|heading| heading.bytes.clone()).chain(places).collect();
        let chars = CharOffsets::of(&parsed.text, places.iter());
        let headings = headings(&parsed, &chars);
        let start_of = |place: &Range<usize>| chars.span(place).from as i32;
        let starts: Vec<i32> = places[parsed.headings.len()..].iter().map(start_of).collect();
        let has_pages = !starts.is_empty();
        let metadata = serde_json::from_str(&parsed.metadata_json)
            .map_err(|e| Error::internal(format!("the parser's metadata is no JSON: {e}")))?;
        Ok((
            parsed.media_type,
            parsed.title,
            parsed.text,
            has_pages.then_some(starts.len() as i32),
            has_pages.then_some(starts),
            JsonB(headings),
            JsonB(metadata),
        ))
    })?;
    Ok(TableIterator::once(row))
}

fn headings(parsed: &ParsedDocument, chars: &CharOffsets) -> serde_json::Value {
    parsed
        .headings
        .iter()
        .map(|heading| {
            let place = chars.span(&heading.bytes);
            json!({
                "level": heading.level,
                "title": heading.title,
                "page": pages(&parsed.pages, &heading.bytes).map(|(first, _)| first),
                "char_from": place.from,
                "char_to": place.to,
            })
        })
        .collect()
}

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn rag_chunk(
    content: Option<&str>,
    options: Option<GivenJsonb>,
) -> std::result::Result<
    TableIterator<
        'static,
        (
            name!(ordinal, i32),
            name!(total, i32),
            name!(parent, i32),
            name!(parent_from, i32),
            name!(parent_to, i32),
            name!(header_path, Vec<String>),
            name!(page_from, Option<i32>),
            name!(page_to, Option<i32>),
            name!(char_from, i32),
            name!(char_to, i32),
            name!(tokens, i32),
            name!(sha256, Vec<u8>),
            name!(context, String),
            name!(content, String),
        ),
    >,
    ErrorReport,
> {
    let prepared = call(|| prepare(Content::Text(required(content, "content")?.to_owned()), options))?;
    Ok(TableIterator::new(rows(prepared)))
}

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn rag_chunk_bytes(
    content: Option<&[u8]>,
    options: Option<GivenJsonb>,
) -> std::result::Result<
    TableIterator<
        'static,
        (
            name!(ordinal, i32),
            name!(total, i32),
            name!(parent, i32),
            name!(parent_from, i32),
            name!(parent_to, i32),
            name!(header_path, Vec<String>),
            name!(page_from, Option<i32>),
            name!(page_to, Option<i32>),
            name!(char_from, i32),
            name!(char_to, i32),
            name!(tokens, i32),
            name!(sha256, Vec<u8>),
            name!(context, String),
            name!(content, String),
        ),
    >,
    ErrorReport,
> {
    let prepared = call(|| prepare(Content::Bytes(required(content, "content")?.to_vec()), options))?;
    Ok(TableIterator::new(rows(prepared)))
}

/// Most characters of a title.
const MAX_TITLE_CHARS: usize = 2_000;

fn prepare(content: Content, options: Option<GivenJsonb>) -> Result<PreparedDocument> {
    check_size(match &content {
        Content::Text(text) => text.len(),
        Content::Bytes(bytes) => bytes.len(),
    })?;
    let options = options_of(options)?;
    let mut reader = OptionReader::new(&options, "rag_chunk")?;
    let chunking = ChunkOptions::read(&mut reader)?;
    let model = reader.text("model", 128)?;
    let title = reader.text("title", MAX_TITLE_CHARS)?;
    let media_type = reader.text("media_type", 128)?;
    let language = reader.text("language", 64)?;
    reader.finish()?;
    if let Some(language) = language {
        check_language(language)?;
    }
    engine::prepare(
        Prepare {
            content,
            media_type: media_type.map(str::to_owned),
            title: title.map(str::to_owned),
            model: model.map(str::to_owned),
            language: language.map(str::to_owned),
            chunking,
        },
        Lane::Interactive,
        &principal::current_principals()?,
    )
}

/// Columns of both chunking functions.
type ChunkRow =
    (i32, i32, i32, i32, i32, Vec<String>, Option<i32>, Option<i32>, i32, i32, i32, Vec<u8>, String, String);

fn rows(prepared: PreparedDocument) -> impl Iterator<Item = ChunkRow> {
    let hashes = chunk::hashes(&prepared);
    let total = prepared.chunks.len() as i32;
    (0..prepared.chunks.len()).zip(hashes).map(move |(index, hash)| {
        let part = &prepared.chunks[index];
        let section = &prepared.sections[part.section];
        (
            index as i32,
            total,
            part.section as i32,
            section.chars.from as i32,
            section.chars.to as i32,
            section.header_path.clone(),
            part.pages.map(|(first, _)| first as i32),
            part.pages.map(|(_, last)| last as i32),
            part.chars.from as i32,
            part.chars.to as i32,
            part.tokens as i32,
            hash.to_vec(),
            part.context.clone(),
            prepared.chunk_text(part).to_owned(),
        )
    })
}
