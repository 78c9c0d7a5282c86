//! Whether what was made of documents agrees with them: text and chunks, chunks and vectors, chunks and keyword
//! segments, cached files, counters. What does not is mended from the rows that are the truth: rag.document for
//! chunks and vectors, rag.chunk for the keyword index.

use super::scope::Scope;
use super::{blob_cache, shared_file};
use crate::error::{Error, Result};
use crate::pg::elevation::elevated;
use crate::pg::{interrupts, shared, transaction};
use crate::storage::blob::{BlobHeader, REPAIR};
use crate::storage::collection::VisibleDomain;
use crate::storage::segment::{self, SegmentHeader};
use crate::storage::verify::{self, CheckedDocument};
use crate::storage::{Id, chunk, vector_codes};
use rag_bm25::{Entry, Language, Segment};
use rag_vector::Codes;
use std::collections::HashSet;

/// Tries to find the segments of a domain unchanged while they are locked.
const TRIES: usize = 10;

/// Something that does not agree.
pub(crate) struct Finding {
    pub(crate) kind: &'static str,
    pub(crate) domain: Id,
    /// A document, a segment, or the domain.
    pub(crate) object: Id,
    pub(crate) problem: String,
    pub(crate) repaired: bool,
    remedy: Remedy,
}

/// How a finding is mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    CutAnew,
    ProcessAnew,
    DeleteStrayChunks,
    DeleteStrayVectors,
    DeleteStrayGraph,
    RebuildIndex,
    MakeCodesAnew,
    RemoveFile,
    Count(i64),
}

/// Compares all that belongs to the caller's domains of a scope; with `repair`, mends what does not agree.
pub(crate) fn verify(scope: &Scope, repair: bool) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for domain in scope.own_domains() {
        let mut found = elevated(|| check(domain))?;
        if repair && !found.is_empty() {
            elevated(|| mend(domain, &mut found))?;
        }
        findings.append(&mut found);
    }
    Ok(findings)
}

struct Report {
    domain: Id,
    findings: Vec<Finding>,
}

impl Report {
    fn add(&mut self, kind: &'static str, object: Id, remedy: Remedy, problem: String) {
        self.findings.push(Finding { kind, domain: self.domain, object, problem, repaired: false, remedy });
    }
}

fn check(domain: &VisibleDomain) -> Result<Vec<Finding>> {
    let mut report = Report { domain: domain.id, findings: Vec::new() };
    for document in verify::documents(domain.id)? {
        interrupts::check();
        if let Some(found) = verify::document(domain.id, document)? {
            check_document(&mut report, document, &found);
        }
    }
    let stray = verify::stray_chunks(domain.id)?;
    if stray > 0 {
        let problem = format!("{stray} chunks belong to no document");
        report.add("text", domain.id, Remedy::DeleteStrayChunks, problem);
    }
    for (document, chunks) in verify::without_vectors(domain.id, &domain.model)? {
        let problem = format!("{chunks} chunks have no vector of {}", domain.model);
        report.add("vector", document, Remedy::ProcessAnew, problem);
    }
    let stray = verify::stray_vectors(domain.id)?;
    if stray > 0 {
        let problem = format!("{stray} vectors belong to no chunk");
        report.add("vector", domain.id, Remedy::DeleteStrayVectors, problem);
    }
    let stray = verify::stray_graph(domain.id)?;
    if stray > 0 {
        let problem = format!("{stray} rows of the graph belong to no chunk");
        report.add("graph", domain.id, Remedy::DeleteStrayGraph, problem);
    }
    check_index(&mut report, domain.id)?;
    check_codes(&mut report, domain.id)?;
    Ok(report.findings)
}

fn check_document(report: &mut Report, document: Id, found: &CheckedDocument) {
    let all = found.chunks.len();
    let wrong = wrong_spans(found);
    if wrong > 0 {
        let problem = format!("{wrong} of {all} chunks are not what stands in the text");
        report.add("text", document, Remedy::CutAnew, problem);
    } else if found.without_section > 0 {
        let problem = format!("{} of {all} chunks have no section", found.without_section);
        report.add("text", document, Remedy::CutAnew, problem);
    } else if found.is_done && found.counted != all as i64 {
        let problem = format!("it counts {} chunks and has {all}", found.counted);
        report.add("counter", document, Remedy::ProcessAnew, problem);
    }
}

/// How many chunks are not the characters of the text that they say they are.
fn wrong_spans(found: &CheckedDocument) -> usize {
    let text = found.text.as_deref().unwrap_or_default();
    let places: Vec<usize> = match text.is_ascii() {
        true => Vec::new(),
        false => text.char_indices().map(|(place, _)| place).chain([text.len()]).collect(),
    };
    let place = |chars: i32| {
        let chars = usize::try_from(chars).ok()?;
        if text.is_ascii() { Some(chars) } else { places.get(chars).copied() }
    };
    let is_right = |from: i32, to: i32, content: &str| {
        let span = place(from).zip(place(to)).and_then(|(from, to)| text.get(from..to));
        span == Some(content)
    };
    found.chunks.iter().filter(|c| !is_right(c.char_from, c.char_to, &c.content)).count()
}

fn check_index(report: &mut Report, domain: Id) -> Result<()> {
    let mut indexed: HashSet<Id> = HashSet::new();
    let mut entries = 0;
    let mut is_readable = true;
    for header in verify::segments(domain)? {
        interrupts::check();
        match transaction::attempt(|| read_ids(&header)) {
            Ok(ids) => {
                entries += ids.len() as i64;
                indexed.extend(ids);
            }
            Err(error) if error.is_damage() => {
                is_readable = false;
                report.add("segment", header.id(), Remedy::RebuildIndex, error.message);
            }
            Err(error) => return Err(error),
        }
        check_file(report, &header.blob);
    }
    if !is_readable {
        return Ok(());
    }
    let living = verify::chunks(domain)?;
    let found = living.iter().filter(|id| indexed.contains(id)).count();
    if found < living.len() {
        let problem = format!("{} chunks are in no keyword segment", living.len() - found);
        report.add("segment", domain, Remedy::RebuildIndex, problem);
    }
    let uncounted = entries - found as i64 - verify::deleted_chunks(domain)?;
    if uncounted > 0 {
        let problem = format!("{uncounted} deleted chunks in the keyword index are not counted as such");
        report.add("counter", domain, Remedy::Count(uncounted), problem);
    }
    Ok(())
}

fn check_file(report: &mut Report, blob: &BlobHeader) {
    if shared_file::is_file_sound(blob) == Some(false) {
        let problem = "its cached file is not what its rows say".to_owned();
        report.add("cache", blob.id, Remedy::RemoveFile, problem);
    }
}

/// Codes that are not there are no damage: a worker makes them, and all vectors are compared meanwhile.
fn check_codes(report: &mut Report, domain: Id) -> Result<()> {
    for blob in vector_codes::of_domain(domain)? {
        interrupts::check();
        match transaction::attempt(|| blob_cache::read::<Codes>(&blob)) {
            Ok(_) => {}
            Err(error) if error.is_damage() => {
                report.add("vector", blob.id, Remedy::MakeCodesAnew, error.message);
            }
            Err(error) => return Err(error),
        }
        check_file(report, &blob);
    }
    Ok(())
}

/// Everything of a domain that may have a cached file.
fn blobs_of(domain: Id) -> Result<Vec<BlobHeader>> {
    let segments = verify::segments(domain)?.into_iter().map(|header| header.blob);
    Ok(segments.chain(vector_codes::of_domain(domain)?).collect())
}

fn read_ids(header: &SegmentHeader) -> Result<Vec<Id>> {
    let segment = blob_cache::read::<Segment>(&header.blob)?;
    if Language::from_name(&header.language) != Some(segment.language()) || segment.len() != header.entries {
        return Err(Error::damaged("a keyword segment is not what its row says").hint(REPAIR));
    }
    Ok(segment.ids().collect())
}

fn mend(domain: &VisibleDomain, findings: &mut [Finding]) -> Result<()> {
    let wants_rebuild = findings.iter().any(|finding| finding.remedy == Remedy::RebuildIndex);
    let mut blobs = None;
    for finding in findings.iter_mut() {
        finding.repaired = match finding.remedy {
            Remedy::CutAnew => {
                verify::delete_chunks(domain.id, finding.object)?;
                verify::queue(domain.id, finding.object)?
            }
            Remedy::ProcessAnew => verify::queue(domain.id, finding.object)?,
            Remedy::DeleteStrayChunks => verify::delete_stray_chunks(domain.id).map(|()| true)?,
            Remedy::DeleteStrayGraph => verify::delete_stray_graph(domain.id).map(|()| true)?,
            Remedy::DeleteStrayVectors => verify::delete_stray_vectors(domain.id).map(|()| true)?,
            Remedy::RemoveFile => {
                if blobs.is_none() {
                    blobs = Some(blobs_of(domain.id)?);
                }
                let of_object = blobs.iter().flatten().filter(|blob| blob.id == finding.object);
                of_object.map(shared_file::remove_file).count() > 0
            }
            // A new index has no deleted chunks.
            Remedy::Count(chunks) => {
                wants_rebuild || verify::add_deletion_count(domain.id, chunks).map(|()| true)?
            }
            Remedy::MakeCodesAnew => {
                vector_codes::forget(domain.id)?;
                shared::request_work_at_commit();
                true
            }
            Remedy::RebuildIndex => false,
        };
    }
    if !wants_rebuild {
        return Ok(());
    }
    let unreadable = match transaction::attempt(|| rebuild(domain)) {
        Ok(()) => None,
        // Rows whose pages cannot be read cannot be deleted either.
        Err(error) if error.is_damage() => Some(error),
        Err(error) => return Err(error),
    };
    for finding in findings.iter_mut().filter(|f| f.remedy == Remedy::RebuildIndex) {
        finding.repaired = unreadable.is_none();
        if let Some(error) = &unreadable {
            finding.problem = format!(
                "{}; it cannot be replaced: {} (a superuser gives unreadable pages up by SET zero_damaged_pages = on)",
                finding.problem, error.message
            );
        }
    }
    Ok(())
}

/// Makes the keyword index of a domain anew from its chunks, in the caller's transaction.
fn rebuild(domain: &VisibleDomain) -> Result<()> {
    let language = Language::from_name(&domain.language)
        .ok_or_else(|| Error::invalid(format!("unknown language \"{}\"", domain.language)))?;
    for _ in 0..TRIES {
        let locked = verify::lock_segments(domain.id)?;
        // Before the living are read: what is deleted from here on is counted for the next merge.
        segment::delete_deletion_counts(domain.id)?;
        let rebuilt: Result<bool> = transaction::with_catalog_snapshot(|| {
            // Written meanwhile: its chunks would be in the index twice.
            if verify::segment_ids(domain.id)? != locked {
                return Ok(false);
            }
            let texts = chunk::indexed_texts_of_snapshot(domain.id)?;
            segment::delete(domain.id, &locked)?;
            for part in texts.chunks(ENTRIES) {
                let entries = part.iter().map(|(id, title, body)| Entry { id: *id, title, body });
                let bytes = rag_bm25::build(language, entries)?;
                let ids: Vec<Id> = part.iter().map(|(id, _, _)| *id).collect();
                segment::insert(domain.id, (&domain.language, &domain.model), &ids, || bytes.as_slice())?;
            }
            segment::forget_merge_failure(domain.id)?;
            Ok(true)
        });
        if rebuilt? {
            return Ok(());
        }
    }
    Err(Error::new(
        pgrx::PgSqlErrorCode::ERRCODE_OBJECT_IN_USE,
        "the keyword index is written to all the time and cannot be made anew",
    )
    .hint("Try again, or rag_pause the collection first."))
}

/// Entries of one new segment: what bounds the memory that building takes.
const ENTRIES: usize = 50_000;
