//! What the table comes to: what a small owner pays for a large one, what growing costs, and what the same costs where it
//! is written plainly.

use crate::figures::Figures;
use crate::plainly::{PLAINLY, PLAINLY_ANY};
use crate::searches::{RATIO, SEARCHES};

/// How much slower a small owner may be beside a large one.
const MOST_BESIDE: f64 = 1.2;

pub(crate) fn print(figures: &Figures) {
    println!("a small owner beside a large one / alone, median of pairs, goal at most {MOST_BESIDE}:");
    for search in SEARCHES.iter().filter(|search| search.filter.is_none()) {
        let shown = figures.series(search.name, RATIO).into_iter().map(|(size, ratio)| {
            let verdict = if ratio <= MOST_BESIDE { "ok" } else { "MISS" };
            format!("{size}: {ratio:.2} {verdict}")
        });
        println!("  {}: {}", search.name, shown.collect::<Vec<_>>().join(", "));
    }
    println!("the large owner, most / fewest chunks, p50:");
    for search in &SEARCHES {
        if let [(fewest, _), .., (most, _)] = figures.series(search.name, "large")[..] {
            print_ratio(figures, search.name, [(most, "large"), (fewest, "large")]);
        }
    }
    for way in [PLAINLY, PLAINLY_ANY] {
        for size in figures.sizes() {
            println!("{size} chunks, {way} / rag_search, p50:");
            for search in &SEARCHES {
                print_ratio(figures, search.name, [(*size, way), (*size, "large")]);
            }
        }
    }
}

/// Prints a ratio, if both figures are there.
fn print_ratio(figures: &Figures, what: &str, [above, below]: [(usize, &str); 2]) {
    let get = |(size, owner)| figures.get(size, what, owner);
    if let (Some(above), Some(below)) = (get(above), get(below)) {
        println!("  {what}: {:.2} ×", above / below);
    }
}
