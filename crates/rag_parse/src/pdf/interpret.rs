//! Runs a page's content stream and keeps what matters for reading: glyphs with their places, and ruling
//! lines.
//!
//! Colours, clips, images and transparency are passed over, so most of what makes interpreters of hostile
//! files expensive is not there. What text means together is left to [`super::line`].

use super::Budget;
use super::font::{FontId, Fonts};
use crate::ParseError;
use hayro_font::hayro_syntax::content::TypedIter;
use hayro_font::hayro_syntax::content::ops::TypedInstruction as Op;
use hayro_font::hayro_syntax::object::{Array, Dict, Name, Object, Stream, String as PdfString};
use hayro_font::hayro_syntax::page::{Page, Resources};
use hayro_font::kurbo::{Affine, Point, Rect, Vec2};

/// Deepest nesting of form XObjects.
const MAX_FORM_DEPTH: usize = 16;

/// Deepest nesting of saved graphics states and of marked content.
const MAX_STATES: usize = 256;

/// Points around a page where text still counts as its own.
const MARGIN: f64 = 4.0;

/// Largest glyph, in points; what is larger cannot be read on any page.
const MAX_EXTENT: f32 = 5_000.0;

/// Most ruling lines of a page that are looked at; a map has more, a table doesn't.
const MAX_RULES: usize = 4_000;

/// A piece of text that is drawn at one place. Coordinates are points from the page's upper left corner.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glyph {
    /// Place in [`Drawn::text`].
    pub(super) from: u32,
    pub(super) to: u32,
    /// Where it starts on its baseline.
    pub(super) origin: Point,
    /// Where the next one would start.
    pub(super) end: Point,
    /// Height of the font.
    pub(super) size: f32,
    pub(super) font: FontId,
}

/// A horizontal or vertical line, or a filled box.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub(super) from: Point,
    pub(super) to: Point,
}

/// What a page draws.
#[derive(Default)]
pub(super) struct Drawn {
    pub(super) text: String,
    /// In the order of drawing, spaces included.
    pub(super) glyphs: Vec<Glyph>,
    pub(super) rules: Vec<Rule>,
    pub(super) images: usize,
    /// Codes whose meaning nobody can tell.
    pub(super) unknown: usize,
}

/// Runs a page.
pub(super) fn draw<'a>(
    page: &Page<'a>,
    fonts: &mut Fonts<'a>,
    budget: &mut Budget,
) -> Result<Drawn, ParseError> {
    let coefficients = page.initial_transform(true).as_coeffs();
    let (width, height) = page.render_dimensions();
    let mut interpreter = Interpreter {
        fonts,
        budget,
        drawn: Drawn::default(),
        page: Rect::new(0.0, 0.0, width.into(), height.into()).inflate(MARGIN, MARGIN),
        state: State::new(Affine::new(coefficients)),
        saved: Vec::new(),
        marked: Vec::new(),
        path: Vec::new(),
    };
    let contents = page.raw();
    let mut data = Vec::new();
    if let Some(stream) = contents.get::<Stream<'a>>("Contents") {
        interpreter.budget.append(&stream, &mut data)?;
    } else if let Some(streams) = contents.get::<Array<'a>>("Contents") {
        for stream in streams.iter::<Stream<'a>>() {
            interpreter.budget.form(0)?;
            interpreter.budget.append(&stream, &mut data)?;
            // An operator does not go over the end of a stream.
            data.push(b'\n');
        }
    }
    interpreter.run(&data, page.resources(), 0)?;
    Ok(interpreter.drawn)
}

#[derive(Clone)]
struct State {
    ctm: Affine,
    text: Affine,
    line: Affine,
    font: Option<FontId>,
    size: f64,
    char_space: f64,
    word_space: f64,
    scaling: f64,
    leading: f64,
    rise: f64,
}

impl State {
    fn new(ctm: Affine) -> Self {
        Self {
            ctm,
            text: Affine::IDENTITY,
            line: Affine::IDENTITY,
            font: None,
            size: 0.0,
            char_space: 0.0,
            word_space: 0.0,
            scaling: 1.0,
            leading: 0.0,
            rise: 0.0,
        }
    }
}

/// What an open sequence of marked content says about its text.
enum Marked {
    Text,
    /// A running header or footer.
    Pagination,
    /// Stands for what is drawn; `None` once it was written.
    Replaced(Option<Box<str>>),
}

struct Interpreter<'a, 'd> {
    fonts: &'d mut Fonts<'a>,
    budget: &'d mut Budget,
    drawn: Drawn,
    /// What can be seen of it.
    page: Rect,
    state: State,
    saved: Vec<State>,
    marked: Vec<Marked>,
    /// Lines and boxes of the path that is not painted yet, in page coordinates.
    path: Vec<Rule>,
}

impl<'a> Interpreter<'a, '_> {
    fn run(&mut self, data: &[u8], resources: &Resources<'a>, depth: usize) -> Result<(), ParseError> {
        let (saved, marked) = (self.saved.len(), self.marked.len());
        let (mut last, mut start) = (Point::ZERO, Point::ZERO);
        let mut operations = TypedIter::new(data);
        while let Some(operation) = operations.next() {
            self.budget.operation()?;
            match operation {
                Op::SaveState(_) if self.saved.len() < saved + MAX_STATES => {
                    self.saved.push(self.state.clone());
                }
                Op::RestoreState(_) if self.saved.len() > saved => {
                    if let Some(state) = self.saved.pop() {
                        self.state = state;
                    }
                }
                Op::Transform(m) => {
                    let m = [m.0, m.1, m.2, m.3, m.4, m.5].map(|number| number.as_f64());
                    self.state.ctm *= Affine::new(m);
                }
                Op::BeginText(_) => self.set_line(Affine::IDENTITY),
                Op::SetTextMatrix(m) => {
                    let m = [m.0, m.1, m.2, m.3, m.4, m.5].map(|number| number.as_f64());
                    self.set_line(Affine::new(m));
                }
                Op::NextLine(n) => self.next_line(n.0.as_f64(), n.1.as_f64()),
                Op::NextLineAndSetLeading(n) => {
                    self.state.leading = -n.1.as_f64();
                    self.next_line(n.0.as_f64(), n.1.as_f64());
                }
                Op::NextLineUsingLeading(_) => self.next_line(0.0, -self.state.leading),
                Op::TextFont(t) => {
                    let font = resources.get_font(t.0);
                    self.state.font = match font.and_then(|dict| self.fonts.load(&dict)) {
                        Some(id) => Some(id),
                        None => self.fonts.standard(),
                    };
                    self.state.size = t.1.as_f64();
                }
                Op::CharacterSpacing(c) => self.state.char_space = c.0.as_f64(),
                Op::WordSpacing(w) => self.state.word_space = w.0.as_f64(),
                Op::HorizontalScaling(h) => self.state.scaling = h.0.as_f64() / 100.0,
                Op::TextLeading(l) => self.state.leading = l.0.as_f64(),
                Op::TextRise(r) => self.state.rise = r.0.as_f64(),
                Op::ShowText(s) => self.show(s.0)?,
                Op::NextLineAndShowText(s) => {
                    self.next_line(0.0, -self.state.leading);
                    self.show(s.0)?;
                }
                Op::ShowTextWithParameters(s) => {
                    self.state.word_space = s.0.as_f64();
                    self.state.char_space = s.1.as_f64();
                    self.next_line(0.0, -self.state.leading);
                    self.show(s.2)?;
                }
                Op::ShowTexts(s) => {
                    for item in s.0.iter::<Object<'_>>() {
                        match item {
                            Object::Number(n) => self.adjust(n.as_f64()),
                            Object::String(text) => self.show(&text)?,
                            _ => {}
                        }
                    }
                }
                Op::BeginMarkedContent(_) => self.begin_marked(saved, Marked::Text),
                Op::BeginMarkedContentWithProperties(b) => {
                    let kind = marked_as(b.0, b.1, resources);
                    self.begin_marked(saved, kind);
                }
                Op::EndMarkedContent(_) if self.marked.len() > marked => {
                    self.marked.pop();
                }
                Op::MoveTo(m) => {
                    last = Point::new(m.0.as_f64(), m.1.as_f64());
                    start = last;
                }
                Op::LineTo(l) => {
                    let to = Point::new(l.0.as_f64(), l.1.as_f64());
                    self.path_line(last, to);
                    last = to;
                }
                Op::ClosePath(_) => {
                    self.path_line(last, start);
                    last = start;
                }
                Op::RectPath(r) => {
                    let from = Point::new(r.0.as_f64(), r.1.as_f64());
                    let to = from + Vec2::new(r.2.as_f64(), r.3.as_f64());
                    self.path_box(from, to);
                    (last, start) = (from, from);
                }
                Op::StrokePath(_)
                | Op::CloseAndStrokePath(_)
                | Op::FillPathNonZero(_)
                | Op::FillPathNonZeroCompatibility(_)
                | Op::FillPathEvenOdd(_)
                | Op::FillAndStrokeNonZero(_)
                | Op::FillAndStrokeEvenOdd(_)
                | Op::CloseFillAndStrokeNonZero(_)
                | Op::CloseFillAndStrokeEvenOdd(_) => {
                    let room = MAX_RULES.saturating_sub(self.drawn.rules.len());
                    self.drawn.rules.extend(self.path.drain(..).take(room));
                }
                Op::EndPath(_) => self.path.clear(),
                Op::InlineImage(_) => self.drawn.images += 1,
                Op::XObject(x) => {
                    if let Some(stream) = resources.get_x_object(x.0) {
                        self.x_object(&stream, resources, depth)?;
                    }
                }
                _ => {}
            }
        }
        if let Some(state) = self.saved.drain(saved..).next() {
            self.state = state;
        }
        self.marked.truncate(marked);
        Ok(())
    }

    fn x_object(
        &mut self,
        stream: &Stream<'a>,
        resources: &Resources<'a>,
        depth: usize,
    ) -> Result<(), ParseError> {
        let dict = stream.dict();
        match dict.get::<Name<'_>>("Subtype").as_deref() {
            Some(b"Image") => self.drawn.images += 1,
            Some(b"Form") if depth < MAX_FORM_DEPTH => {
                self.budget.form(depth)?;
                let mut data = Vec::new();
                self.budget.append(stream, &mut data)?;
                let own = dict.get::<Dict<'a>>("Resources").map(Resources::new);
                let before = self.state.clone();
                if let Some(matrix) = dict.get::<[f64; 6]>("Matrix") {
                    self.state.ctm *= Affine::new(matrix);
                }
                self.path.clear();
                self.run(&data, own.as_ref().unwrap_or(resources), depth + 1)?;
                self.state = before;
            }
            _ => {}
        }
        Ok(())
    }

    fn set_line(&mut self, matrix: Affine) {
        self.state.line = matrix;
        self.state.text = matrix;
    }

    fn next_line(&mut self, x: f64, y: f64) {
        self.set_line(self.state.line * Affine::translate((x, y)));
    }

    /// Moves by thousandths of the font size, against the direction of writing.
    fn adjust(&mut self, thousandths: f64) {
        let by = -thousandths / 1_000.0 * self.state.size;
        let horizontal = self.state.font.is_none_or(|font| self.fonts.is_horizontal(font));
        let by = if horizontal { (by * self.state.scaling, 0.0) } else { (0.0, by) };
        self.state.text *= Affine::translate(by);
    }

    fn show(&mut self, text: &PdfString<'_>) -> Result<(), ParseError> {
        let Some(font) = self.state.font.or_else(|| self.fonts.standard()) else {
            return Ok(());
        };
        let bytes = text.as_bytes();
        let horizontal = self.fonts.is_horizontal(font);
        let mut at = 0;
        while at < bytes.len() {
            self.budget.operation()?;
            let (code, length) = self.fonts.read_code(font, bytes, at);
            at += length;
            let meaning = self.fonts.code(font, code);
            let mut space = self.state.char_space;
            if length == 1 && code == 32 {
                space += self.state.word_space;
            }
            let size = self.state.size;
            let moves = if horizontal {
                Vec2::new((meaning.advance.x / 1_000.0 * size + space) * self.state.scaling, 0.0)
            } else {
                Vec2::new(0.0, meaning.advance.y / 1_000.0 * size + space)
            };
            // The place of the next glyph includes the spacing, the end of this one does not.
            let ink = if horizontal {
                Vec2::new(meaning.advance.x / 1_000.0 * size * self.state.scaling, 0.0)
            } else {
                Vec2::new(0.0, meaning.advance.y / 1_000.0 * size)
            };
            let to_page = self.state.ctm * self.state.text * Affine::translate((0.0, self.state.rise));
            if self.page.contains(to_page * Point::ZERO) {
                push_glyph(&mut self.drawn, &mut self.marked, &meaning.text, font, to_page, ink, size);
            }
            self.state.text *= Affine::translate(moves);
        }
        Ok(())
    }

    fn begin_marked(&mut self, base: usize, kind: Marked) {
        if self.marked.len() < base + MAX_STATES {
            self.marked.push(kind);
        }
    }

    /// A line of the path, if it is horizontal or vertical on the page.
    fn path_line(&mut self, from: Point, to: Point) {
        let (from, to) = (self.state.ctm * from, self.state.ctm * to);
        let straight = (from.x - to.x).abs() < 1.0 || (from.y - to.y).abs() < 1.0;
        if straight && from.is_finite() && to.is_finite() && self.path.len() < MAX_RULES {
            self.path.push(Rule { from, to });
        }
    }

    /// A box of the path: a line if it is thin, else its four sides.
    fn path_box(&mut self, from: Point, to: Point) {
        let (a, c) = (self.state.ctm * from, self.state.ctm * to);
        if (a.x - c.x).abs() < 3.0 || (a.y - c.y).abs() < 3.0 {
            let middle = a.midpoint(c);
            let (from, to) = if (a.x - c.x).abs() < (a.y - c.y).abs() {
                (Point::new(middle.x, a.y), Point::new(middle.x, c.y))
            } else {
                (Point::new(a.x, middle.y), Point::new(c.x, middle.y))
            };
            if from.is_finite() && to.is_finite() && self.path.len() < MAX_RULES {
                self.path.push(Rule { from, to });
            }
        } else {
            let (b, d) = (Point::new(to.x, from.y), Point::new(from.x, to.y));
            for (from, to) in [(from, b), (b, to), (to, d), (d, from)] {
                self.path_line(from, to);
            }
        }
    }
}

fn push_glyph(
    drawn: &mut Drawn,
    marked: &mut [Marked],
    text: &str,
    font: FontId,
    to_page: Affine,
    ink: Vec2,
    size: f64,
) {
    let mut replacement = None;
    for mark in marked.iter_mut().rev() {
        match mark {
            Marked::Pagination => return,
            Marked::Replaced(with) => replacement = Some(with.take().unwrap_or_default()),
            Marked::Text => {}
        }
    }
    let text = replacement.as_deref().unwrap_or(text);
    let origin = to_page * Point::ZERO;
    let end = to_page * ink.to_point();
    let [_, _, c, d, _, _] = to_page.as_coeffs();
    let size = (c.hypot(d) * size.abs()) as f32;
    let at = drawn.text.len();
    let is_sane = (end - origin).hypot() <= MAX_EXTENT.into() && size <= MAX_EXTENT;
    // A page holds less text than this by far; places in it are kept in 32 bits.
    if !is_sane || at > u32::MAX as usize / 2 {
        return;
    }
    if text.is_empty() && replacement.is_none() {
        drawn.unknown += 1;
        return;
    }
    drawn.text.push_str(text);
    let (from, to) = (at as u32, drawn.text.len() as u32);
    drawn.glyphs.push(Glyph { from, to, origin, end, size, font });
}

/// What the properties of marked content say.
fn marked_as(tag: &Name<'_>, properties: &Object<'_>, resources: &Resources<'_>) -> Marked {
    let named;
    let dict = match properties {
        Object::Dict(dict) => dict,
        Object::Name(name) => match resources.properties.get::<Dict<'_>>(name) {
            Some(dict) => {
                named = dict;
                &named
            }
            None => return Marked::Text,
        },
        _ => return Marked::Text,
    };
    if tag.as_ref() == b"Artifact" && dict.get::<Name<'_>>("Type").as_deref() == Some(b"Pagination") {
        return Marked::Pagination;
    }
    match dict.get::<PdfString<'_>>("ActualText") {
        // Longer ones stand for more than one line, whose places would be lost.
        Some(text) if text.as_bytes().len() <= 32 => {
            let text = super::info::text_string(text.as_bytes());
            let text: String = text.chars().filter(|c| !c.is_control()).collect();
            Marked::Replaced(Some(text.into_boxed_str()))
        }
        _ => Marked::Text,
    }
}
