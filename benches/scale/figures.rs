//! What was measured, by number of chunks: as a table with a column for each, and as CSV.

use rag_benches::{Table, Times};
use std::collections::HashSet;
use std::fmt::Write as _;

/// Unit of times.
const MILLISECONDS: &str = "ms";

/// One figure.
#[derive(Debug, Clone)]
struct Figure {
    chunks: usize,
    what: String,
    owner: &'static str,
    unit: &'static str,
    /// A median where it is of times.
    value: f64,
    /// Of times alone, with how many there are.
    spread: Option<(f64, usize)>,
}

/// All figures, in the order in which they were measured.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    sizes: Vec<usize>,
    /// Of what is being added.
    size: usize,
    figures: Vec<Figure>,
}

impl Figures {
    /// What is added from here on is of this size.
    pub(crate) fn begin(&mut self, chunks: usize) {
        self.size = chunks;
        if let Err(place) = self.sizes.binary_search(&chunks) {
            self.sizes.insert(place, chunks);
        }
    }

    /// All sizes.
    pub(crate) fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Adds a figure, and shows it at once: the rest may take hours.
    pub(crate) fn add(&mut self, what: &str, owner: &'static str, unit: &'static str, value: f64) {
        self.push(what, owner, unit, value, None);
    }

    /// Adds median and 95th percentile of times.
    pub(crate) fn add_times(&mut self, what: &str, owner: &'static str, times: &Times) {
        self.push(what, owner, MILLISECONDS, times.p50(), Some((times.p95(), times.len())));
    }

    fn push(
        &mut self,
        what: &str,
        owner: &'static str,
        unit: &'static str,
        value: f64,
        spread: Option<(f64, usize)>,
    ) {
        let chunks = self.size;
        let figure = Figure { chunks, what: what.into(), owner, unit, value, spread };
        eprintln!("{chunks}: {what} ({owner}): {} {unit}", figure.shown());
        self.figures.push(figure);
    }

    /// A figure of a size, if there is one.
    pub(crate) fn get(&self, chunks: usize, what: &str, owner: &str) -> Option<f64> {
        let is_it = |f: &&Figure| f.chunks == chunks && f.what == what && f.owner == owner;
        self.figures.iter().find(is_it).map(|f| f.value)
    }

    /// A figure of each size that has one.
    pub(crate) fn series(&self, what: &str, owner: &str) -> Vec<(usize, f64)> {
        self.sizes.iter().filter_map(|size| Some((*size, self.get(*size, what, owner)?))).collect()
    }

    /// Prints the table.
    pub(crate) fn print(&self) {
        let sizes: Vec<String> = self.sizes.iter().map(|size| format!("{size} chunks")).collect();
        let columns: Vec<&str> =
            ["what", "owner", "unit"].into_iter().chain(sizes.iter().map(String::as_str)).collect();
        let mut table = Table::new(&columns);
        let mut shown: Vec<(&str, &str)> = Vec::new();
        for Figure { what, owner, unit, .. } in &self.figures {
            if shown.contains(&(what, owner)) {
                continue;
            }
            shown.push((what, owner));
            let of = |size: &usize| {
                self.figures.iter().find(|f| f.chunks == *size && f.what == *what && f.owner == *owner)
            };
            let cells = self.sizes.iter().map(|size| of(size).map_or_else(|| "–".into(), Figure::shown));
            let head = [what.clone(), (*owner).to_owned(), (*unit).to_owned()];
            table.add(head.into_iter().chain(cells).collect());
        }
        println!("times are p50 / p95");
        table.print();
    }

    /// Writes `docs/scale.csv`. Unless everything was measured, what this run did not measure stays in it.
    pub(crate) fn save_csv(&self, is_everything: bool) {
        let path = rag_tests::repository().join("docs/scale.csv");
        let before = if is_everything { String::new() } else { std::fs::read_to_string(&path).unwrap() };
        let measured: HashSet<String> = self.figures.iter().map(Figure::key).collect();
        let stays = |line: &&str| {
            let key = line.rsplitn(5, ',').last();
            !line.starts_with("chunks,") && key.is_some_and(|key| !measured.contains(key))
        };
        let mut csv = "chunks,what,owner,unit,value,p95,queries\n".to_owned();
        before.lines().filter(stays).for_each(|line| writeln!(csv, "{line}").unwrap());
        for figure @ Figure { unit, value, spread, .. } in &self.figures {
            let (p95, queries) = match spread {
                Some((p95, queries)) => (format!("{p95:.3}"), queries.to_string()),
                None => Default::default(),
            };
            writeln!(csv, "{},{unit},{value:.3},{p95},{queries}", figure.key()).unwrap();
        }
        std::fs::write(&path, csv).unwrap();
        println!("written: {}", path.display());
    }
}

impl Figure {
    /// The first columns of its line.
    fn key(&self) -> String {
        let Self { chunks, what, owner, .. } = self;
        format!(r#"{chunks},"{what}","{owner}""#)
    }

    fn shown(&self) -> String {
        match self.spread {
            Some((p95, _)) => format!("{:.2} / {p95:.2}", self.value),
            None if matches!(self.unit, "share" | "×") => format!("{:.3}", self.value),
            None if self.unit == MILLISECONDS => format!("{:.2}", self.value),
            None => format!("{:.1}", self.value),
        }
    }
}
