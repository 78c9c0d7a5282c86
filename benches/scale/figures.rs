//! What was measured, by number of chunks: as a table with a column for each, and as CSV.

use rag_benches::{Table, Times};
use std::path::PathBuf;

/// Unit of times.
const MILLISECONDS: &str = "ms";

/// One figure.
#[derive(Debug, Clone)]
struct Figure {
    chunks: usize,
    what: String,
    owner: String,
    unit: String,
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
        let figure =
            Figure { chunks, what: what.into(), owner: owner.into(), unit: unit.into(), value, spread };
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

    /// With what `docs/scale.csv` has of former runs and this one has not measured.
    #[must_use]
    pub(crate) fn with_saved(mut self) -> Self {
        let saved = std::fs::read_to_string(path()).unwrap_or_default();
        for figure in saved.lines().filter_map(Figure::of_line) {
            if self.get(figure.chunks, &figure.what, &figure.owner).is_none() {
                self.begin(figure.chunks);
                self.figures.push(figure);
            }
        }
        self
    }

    /// Writes `docs/scale.csv`.
    pub(crate) fn save_csv(&self) {
        let mut lines: Vec<String> = self.figures.iter().map(Figure::line).collect();
        // So that runs differ in what they measured alone.
        lines.sort_by_cached_key(|line| {
            let (chunks, rest) = line.split_once(',').unwrap();
            (chunks.parse::<usize>().unwrap(), rest.to_owned())
        });
        std::fs::write(path(), format!("chunks,what,owner,unit,value,p95,queries\n{}\n", lines.join("\n")))
            .unwrap();
        println!("written: {}", path().display());
    }
}

fn path() -> PathBuf {
    rag_tests::repository().join("docs/scale.csv")
}

impl Figure {
    /// Its line of CSV, of which the first columns tell it from others.
    fn line(&self) -> String {
        let Self { chunks, what, owner, unit, value, spread } = self;
        let (p95, queries) = match spread {
            Some((p95, queries)) => (format!("{p95:.3}"), queries.to_string()),
            None => Default::default(),
        };
        format!(r#"{chunks},"{what}","{owner}",{unit},{value:.3},{p95},{queries}"#)
    }

    /// What [`Self::line`] made of one; of the line of headings nothing.
    fn of_line(line: &str) -> Option<Self> {
        let mut columns = line.splitn(2, ',');
        let (chunks, rest) = (columns.next()?.parse().ok()?, columns.next()?);
        let (what, rest) = rest.strip_prefix('"')?.split_once("\",\"")?;
        let (owner, rest) = rest.split_once("\",")?;
        let [unit, value, p95, queries]: [&str; 4] = rest.split(',').collect::<Vec<_>>().try_into().ok()?;
        let spread = p95.parse().ok().zip(queries.parse().ok());
        let (what, owner, unit) = (what.to_owned(), owner.to_owned(), unit.to_owned());
        Some(Self { chunks, what, owner, unit, value: value.parse().ok()?, spread })
    }

    fn shown(&self) -> String {
        match self.spread {
            Some((p95, _)) => format!("{:.2} / {p95:.2}", self.value),
            None if matches!(self.unit.as_str(), "share" | "×") => format!("{:.3}", self.value),
            None if self.unit == MILLISECONDS => format!("{:.2}", self.value),
            None => format!("{:.1}", self.value),
        }
    }
}
