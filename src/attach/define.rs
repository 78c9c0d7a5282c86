//! Attaching a table to a collection of its own, and ending that.

use super::origin;
use crate::collection::create::new_collection;
use crate::collection::name::split_name;
use crate::error::{Error, Result, excerpt};
use crate::pg::{Oid, elevation, principal};
use crate::storage::attachment::{self, Column, Definition};
use crate::storage::relation::{self, Attribute, Relation};
use crate::storage::source;
use crate::storage::{Id, collection};
use pgrx::PgSqlErrorCode as Code;
use rag_core::collection::CollectionOptions;
use rag_core::graph::Extraction;
use rag_core::option::Choice;
use serde_json::Value;

/// What a caller wants of a table.
pub(crate) struct AttachRequest<'a> {
    pub(crate) collection: Option<&'a str>,
    pub(crate) content: Option<Vec<String>>,
    pub(crate) title: Option<&'a str>,
    pub(crate) uri: Option<&'a str>,
    pub(crate) metadata: Vec<String>,
    pub(crate) file: Option<&'a str>,
    pub(crate) labels: Option<&'a Value>,
    pub(crate) owner: Option<&'a str>,
    pub(crate) media_type: Option<&'a str>,
    pub(crate) language: &'a str,
    pub(crate) model: Option<&'a str>,
    pub(crate) chunking: Option<&'a Value>,
    pub(crate) graph: Option<Extraction>,
}

/// Attaches a table, or changes how it is attached. Returns the collection.
pub(crate) fn attach(table: Oid, request: &AttachRequest<'_>) -> Result<Id> {
    let relation = own_table(table)?;
    let attributes = relation::attributes(table)?;
    let definition = define(&relation, &attributes, request)?;
    let resolved = source::resolve(relation.clone(), &definition, true)?.map_err(Error::internal)?;
    let mut definition = resolved.definition.clone();
    // Whatever the expression does, it does as the owner.
    elevation::restricted_to(relation.owner, || resolved.check())?;

    let name = request.collection.unwrap_or(&relation.name);
    let owner = principal::current_owner()?;
    let known = attachment_of(table, name, &owner)?;
    let collection = match known {
        Some(collection) => collection,
        None => create_collection(name, &owner, request)?,
    };
    let origin = origin(table);
    elevation::elevated(|| {
        attachment::watch(table)?;
        if let Some(known) = attachment::of_collection(collection)?.map(|known| known.definition)
            && known != definition
        {
            attachment::forget_rows(collection)?;
            // Keys that are stored may be of other columns, until a worker has looked.
            if known.key != definition.key || known.key_types != definition.key_types {
                definition.key_types.clear();
            }
        }
        attachment::store(collection, table, &relation.full_name, &origin, &definition)
    })?;
    Ok(collection)
}

/// The collection of this name that the table is attached to already.
fn attachment_of(table: Oid, name: &str, owner: &str) -> Result<Option<Id>> {
    let attached = elevation::elevated(|| attachment::of_source(table))?;
    Ok(attached.into_iter().find(|(_, n, o)| n == name && o == owner).map(|(id, _, _)| id))
}

fn create_collection(name: &str, owner: &str, request: &AttachRequest<'_>) -> Result<Id> {
    let mut options = serde_json::Map::new();
    let given = [
        ("chunking", request.chunking.cloned()),
        ("graph", request.graph.map(|graph| Value::from(graph.name()))),
    ];
    options.extend(given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    let options = Value::Object(options);
    CollectionOptions::from_json(&options)?;
    let mut new = new_collection(name, owner, request.model, request.language, false, options)?;
    new.id = attachment::new_attached_id()?;
    let domain = attachment::new_attached_id()?;
    elevation::elevated(|| match collection::create(&new)? {
        Some(created) => {
            collection::ensure_domain(domain, created, owner)?;
            Ok(created)
        }
        None => Err(Error::new(
            Code::ERRCODE_DUPLICATE_OBJECT,
            format!("collection \"{}\" already exists", excerpt(name)),
        )
        .hint("An attached table has a collection of its own: give another name as collection.")),
    })
}

/// Ends the attachments of a table to the collections of this name, or to all. Returns how many there were.
pub(crate) fn detach(table: Oid, name: Option<&str>) -> Result<usize> {
    let relation = relation::relation(table)?.ok_or_else(|| no_table(table))?;
    require_owner(&relation)?;
    let attached = elevation::elevated(|| attachment::of_source(table))?;
    let (owner, bare) = match name.map(split_name).transpose()? {
        Some((owner, bare)) => (owner, Some(bare)),
        None => (None, None),
    };
    let chosen: Vec<Id> = attached
        .iter()
        .filter(|(_, n, o)| bare.is_none_or(|bare| bare == n) && owner.is_none_or(|owner| owner == o))
        .map(|(id, _, _)| *id)
        .collect();
    if chosen.is_empty() {
        return Err(Error::missing(match name {
            Some(name) => {
                format!("table {} is not attached to collection \"{}\"", relation.full_name, excerpt(name))
            }
            None => format!("table {} is not attached", relation.full_name),
        }));
    }
    elevation::elevated(|| {
        attachment::delete_collections(&chosen)?;
        attachment::unwatch_if_free(table)
    })?;
    Ok(chosen.len())
}

fn no_table(table: Oid) -> Error {
    Error::new(Code::ERRCODE_UNDEFINED_TABLE, format!("there is no table with OID {}", table.to_u32()))
}

fn require_owner(relation: &Relation) -> Result<()> {
    if relation::acts_as(relation.owner)? {
        return Ok(());
    }
    Err(Error::forbidden(format!("must be owner of table {}", relation.full_name)))
}

/// The relation, if it is a table that can be attached and the caller owns it.
fn own_table(table: Oid) -> Result<Relation> {
    relation::lock(table);
    let relation = relation::relation(table)?.ok_or_else(|| no_table(table))?;
    let unsupported = |what: &str| {
        Error::new(Code::ERRCODE_FEATURE_NOT_SUPPORTED, format!("{} is {what}", relation.full_name))
            .hint("Tables and partitioned tables can be attached.")
    };
    match relation.kind.as_str() {
        "r" | "p" => {}
        "f" => return Err(unsupported("a foreign table, whose changes cannot be followed")),
        kind => {
            let what = match kind {
                "v" => "a view",
                "m" => "a materialized view",
                "S" => "a sequence",
                _ => "no table",
            };
            return Err(Error::new(
                Code::ERRCODE_WRONG_OBJECT_TYPE,
                format!("{} is {what}", relation.full_name),
            )
            .hint("Attach the tables that it is made of."));
        }
    }
    require_owner(&relation)?;
    if relation.persistence == "t" {
        return Err(unsupported("a temporary table"));
    }
    if ["pg_catalog", "information_schema", "rag", "pg_toast"].contains(&relation.schema.as_str()) {
        return Err(unsupported("a table of the system"));
    }
    if relation.has_foreign_partition {
        return Err(unsupported("partitioned into foreign tables, whose changes cannot be followed"));
    }
    if relation.is_partition {
        return Err(unsupported("a partition").hint("Attach the partitioned table."));
    }
    Ok(relation)
}

fn define(relation: &Relation, attributes: &[Attribute], request: &AttachRequest<'_>) -> Result<Definition> {
    let find = |name: &str| -> Result<&Attribute> {
        attributes.iter().find(|a| a.name == name).ok_or_else(|| {
            Error::new(
                Code::ERRCODE_UNDEFINED_COLUMN,
                format!("column \"{}\" of table {} does not exist", excerpt(name), relation.full_name),
            )
        })
    };
    let column = |a: &Attribute| Column { number: a.number, name: a.name.clone(), label: None };
    let optional = |name: Option<&str>| name.map(|name| find(name).map(column)).transpose();
    let listed = |names: &[String]| names.iter().map(|n| find(n).map(column)).collect::<Result<Vec<_>>>();

    let key_numbers = relation::key_columns(relation.oid, attributes)?;
    let key = key_numbers
        .iter()
        .filter_map(|number| attributes.iter().find(|a| a.number == *number))
        .map(column)
        .collect();
    let (title, uri) = (optional(request.title)?, optional(request.uri)?);
    let metadata = listed(&request.metadata)?;
    let file = optional(request.file)?;
    if let Some(file) = &file {
        if !find(&file.name)?.is_bytea {
            return Err(Error::new(
                Code::ERRCODE_DATATYPE_MISMATCH,
                format!("column \"{}\" is not of type bytea", excerpt(&file.name)),
            ));
        }
        if request.content.is_some() {
            return Err(Error::invalid("content and option file exclude each other")
                .hint("Attach the table a second time, to another collection, for its other documents."));
        }
    }
    let mut content = match &request.content {
        Some(names) => listed(names)?,
        None if file.is_some() => Vec::new(),
        None => {
            let taken: Vec<i16> =
                title.iter().chain(&uri).chain(&metadata).map(|c| c.number).chain(key_numbers).collect();
            attributes
                .iter()
                .filter(|a| a.category == "S" && !taken.contains(&a.number))
                .map(column)
                .collect()
        }
    };
    if content.is_empty() && file.is_none() {
        return Err(Error::invalid(format!("table {} has no text column for content", relation.full_name))
            .hint("Name columns: content => ARRAY['body'], or options => '{\"file\": \"column\"}'."));
    }
    for column in &content {
        if find(&column.name)?.is_bytea {
            return Err(Error::new(
                Code::ERRCODE_DATATYPE_MISMATCH,
                format!("column \"{}\" is of type bytea", excerpt(&column.name)),
            )
            .hint("A column with files: options => '{\"file\": \"column\"}'."));
        }
    }
    label(&mut content, request.labels)?;
    let owner = request.owner.map(str::to_owned);
    let owner_column =
        request.owner.and_then(|owner| attributes.iter().find(|a| a.name == owner)).map(column);
    let media_type = request.media_type.map(str::to_owned);
    // What depends on types and indexes is found out when the columns are.
    let (key_types, is_uri_unique) = (Vec::new(), false);
    Ok(Definition {
        key,
        key_types,
        content,
        title,
        uri,
        is_uri_unique,
        metadata,
        file,
        owner,
        owner_column,
        media_type,
    })
}

fn label(content: &mut [Column], labels: Option<&Value>) -> Result<()> {
    let Some(labels) = labels.and_then(Value::as_object) else { return Ok(()) };
    for (name, label) in labels {
        let label = label.as_str().filter(|l| !l.trim().is_empty() && !l.contains(char::is_control));
        let column = content.iter_mut().find(|c| c.name == *name);
        match (column, label) {
            (Some(column), Some(label)) => column.label = Some(label.trim().to_owned()),
            (None, _) => {
                return Err(Error::invalid(format!(
                    "label for \"{}\", which is no content column",
                    excerpt(name)
                )));
            }
            (_, None) => {
                return Err(Error::invalid(format!(
                    "the label of column \"{}\" must be a line of text",
                    excerpt(name)
                )));
            }
        }
    }
    Ok(())
}
