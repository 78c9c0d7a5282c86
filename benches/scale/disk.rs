//! Room on the disk, of all owners together.

use crate::figures::Figures;
use rag_benches::Library;

/// What takes room, and an expression for its bytes.
const STORES: [(&str, &str); 4] = [
    ("chunks", "pg_total_relation_size('rag.chunk')"),
    ("keyword segments", "pg_total_relation_size('rag.segment')"),
    (
        "embeddings",
        "(SELECT sum(pg_table_size(relid)) FROM pg_partition_tree('rag.embedding') WHERE isleaf)
         + (SELECT sum(pg_relation_size(indexrelid)) FROM pg_index JOIN pg_partition_tree('rag.embedding') ON relid = indrelid
            WHERE isleaf AND indisprimary)",
    ),
    ("vector codes", "pg_total_relation_size('rag.segment_codes')"),
];

pub(crate) fn measure(figures: &mut Figures, library: &Library<'_>) {
    let mut admin = library.admin();
    for (store, bytes) in STORES {
        let mib = admin.float(&format!("SELECT coalesce({bytes}, 0) / 1048576.0"));
        if mib > 0.0 {
            figures.add(&format!("disk: {store}"), "all", "MiB", mib);
        }
    }
}
