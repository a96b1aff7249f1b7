//! The terminal view of `examples/scene`, as a picture for the README.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use tempfile::TempDir;

use super::terminal::Terminal;
use super::{Board, is_possible};
use crate::harness::example_program;

const COLUMNS: u16 = 110;
const LINES: u16 = 32;
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/pictures/terminal.svg");

/// Width and height of a character in the picture.
const WIDTH: u16 = 8;
const HEIGHT: u16 = 18;
const BACKGROUND: &str = "#14181c";
const FOREGROUND: &str = "#d8dee4";
/// The sixteen colours of a terminal.
const PALETTE: [&str; 16] = [
    "#14181c", "#e5534b", "#57ab5a", "#c69026", "#539bf5", "#b083f0", "#39c5cf", "#d8dee4",
    "#768390", "#ff938a", "#6bc46d", "#daaa3f", "#6cb6ff", "#dcbdfb", "#56d4dd", "#ffffff",
];

/// With `CALLBOARD_BLESS=pictures` it becomes that of the README; look at it. It is a little
/// different each time.
#[test]
fn view_of_the_scene_is_the_picture_of_the_readme() {
    if !is_possible() {
        return;
    }
    let home = TempDir::new().unwrap();
    let made = Command::new(example_program("scene")).arg(home.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let board = Board::at(home.path().join(".coordination"));
    let mut ui = Terminal::start(&board, COLUMNS, LINES, &[]);
    let parts = ["Port the parser to Rust", "WAITS FOR YOU", "AGENTS", "NEXT", "6 Graph"];
    parts.into_iter().for_each(|part| ui.shows(part));
    let mut picture = String::new();
    ui.look(|screen| picture = drawn(screen));
    ui.keys("q");
    assert_eq!(ui.code(), Some(0));
    if env::var("CALLBOARD_BLESS").is_ok_and(|wanted| wanted == "pictures") {
        fs::write(KEPT, &picture).unwrap();
    }
    let kept = fs::read_to_string(KEPT).unwrap();
    for picture in [picture, kept] {
        assert!(picture.len() < 60_000, "{} bytes", picture.len());
        for word in parts.iter().flat_map(|part| part.split(' ')) {
            assert!(picture.contains(&format!(">{word}</text>")), "no {word:?} in:\n{picture}");
        }
    }
}

/// The screen as SVG: one text for each word.
fn drawn(screen: &vt100::Screen) -> String {
    let (width, height) = (COLUMNS * WIDTH + 2 * WIDTH, LINES * HEIGHT + HEIGHT);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" \
         font-size=\"13\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"{BACKGROUND}\"/>\n"
    );
    for row in 0..LINES {
        let cells: Vec<_> = (0..COLUMNS).filter_map(|column| screen.cell(row, column)).collect();
        let mut column = 0;
        for run in cells.chunk_by(|one, next| look(one) == look(next)) {
            draw_run(&mut svg, row, column, run);
            column += u16::try_from(run.len()).unwrap();
        }
    }
    svg + "</svg>\n"
}

fn draw_run(svg: &mut String, row: u16, column: u16, run: &[&vt100::Cell]) {
    let (x, y) = (WIDTH + column * WIDTH, HEIGHT / 2 + row * HEIGHT);
    let width = u16::try_from(run.len()).unwrap() * WIDTH;
    let (front, back, is_bold) = look(run[0]);
    if back != BACKGROUND {
        writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{HEIGHT}\" fill=\"{back}\"/>"
        )
        .unwrap();
    }
    let weight = if is_bold { " font-weight=\"bold\"" } else { "" };
    let characters: Vec<_> =
        run.iter().map(|cell| if cell.has_contents() { cell.contents() } else { " " }).collect();
    // Readers of SVG take many spaces for one, so each stretch without them has its own place.
    let mut place = x;
    for part in characters.chunk_by(|one, next| (*one == " ") == (*next == " ")) {
        let width = u16::try_from(part.len()).unwrap() * WIDTH;
        let text = part.concat().replace('&', "&amp;").replace('<', "&lt;");
        if text.trim() != "" {
            let y = y + 13;
            writeln!(
                svg,
                "<text x=\"{place}\" y=\"{y}\" textLength=\"{width}\" fill=\"{front}\"{weight}>\
                 {text}</text>"
            )
            .unwrap();
        }
        place += width;
    }
}

/// Colour of a character, colour behind it, and whether it is bold.
fn look(cell: &vt100::Cell) -> (&'static str, &'static str, bool) {
    let front = colour(cell.fgcolor(), if cell.dim() { PALETTE[8] } else { FOREGROUND });
    let back = colour(cell.bgcolor(), BACKGROUND);
    if cell.inverse() { (back, front, cell.bold()) } else { (front, back, cell.bold()) }
}

fn colour(colour: vt100::Color, default: &'static str) -> &'static str {
    match colour {
        vt100::Color::Idx(index) => PALETTE.get(usize::from(index)).copied().unwrap_or(default),
        vt100::Color::Default | vt100::Color::Rgb(..) => default,
    }
}
