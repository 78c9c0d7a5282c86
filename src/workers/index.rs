//! The worker "rag_ext index": makes codes of vectors where they are missing, beside the workers that ingest.

use crate::error::Result;
use crate::pg::{shared, worker};
use crate::search;
use crate::storage::segment::SegmentHeader;
use crate::storage::{Id, installed, restore, vector_codes};
use pgrx::PgLogLevel;
use rag_bm25::Segment;

worker::worker_entry! {
    /// Entry of the worker "rag_ext index".
    rag_ext_index_main => run
}

fn run(database: u32) {
    if !worker::connect(c"rag_ext index", database) {
        return;
    }
    match make_all() {
        Ok(()) => shared::worker_idle(None),
        Err(_) if matches!(worker::transaction(installed::is_installed), Ok(false)) => {
            shared::worker_idle(None)
        }
        Err(error) => worker::log(
            PgLogLevel::WARNING,
            error.code,
            format!("rag_ext: codes of vectors cannot be made: {}", error.one_line()),
            Some("It is tried again; meanwhile vector search compares all chunks."),
        ),
    }
}

/// One transaction for each segment. What is damaged, or in somebody's hands, does not keep others from it.
fn make_all() -> Result<()> {
    let mut place = (0, 0);
    let mut damage = None;
    // Of what is being restored, vectors may be missing that are still to come.
    let may_go_on = || Ok(installed::is_installed()? && !restore::is_noted()?);
    while !worker::should_stop() && worker::transaction(may_go_on)? {
        let Some(missing) = worker::transaction(|| vector_codes::missing(place))? else { break };
        worker::set_activity("rag_ext: making codes of vectors");
        place = missing.place();
        match worker::transaction(|| vector_codes::make(&missing, chunks_of)) {
            Err(error) if error.is_damage() => damage = Some(error),
            made => made?,
        }
    }
    damage.map_or(Ok(()), Err)
}

fn chunks_of(header: &SegmentHeader) -> Result<Vec<Id>> {
    Ok(search::open_latest::<Segment>(&header.blob)?.ids().collect())
}
