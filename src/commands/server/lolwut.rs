//! LOLWUT: a picture, and the version.
//!
//! It draws dunlins at low tide with the engine's generator: the same seed and history give the same shore. As in
//! Redis, a version that drew nothing returns only the last line, and unknown words are ignored.

use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, REDIS_VERSION};

pub(super) const LOLWUT: Command = Command {
    name: "LOLWUT",
    syntax: "[VERSION version]",
    family: Family::Server,
    arity: Arity::AtLeast(1),
    flags: Flags::READONLY.and(Flags::FAST),
    since: "5.0.0",
    cost: "",
    about: "Draws a picture and prints the version.",
    run: lolwut,
    ..Command::ROW
};

/// The versions of Redis that drew something.
const DRAWING: [i64; 3] = [5, 6, 8];

fn lolwut(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let version = if args.take_with("VERSION", 1) { args.integer()? } else { DRAWING[2] };
    let draws = DRAWING.contains(&version);
    let mut text = if draws { shore(&mut |bound| operations::random_below(cx, bound)) } else { String::new() };
    text.push_str(&format!("Redis ver. {REDIS_VERSION}\n"));
    cx.reply().verbatim("txt", text.as_bytes());
    Ok(())
}

const WIDTH: usize = 64;
const SEA_LINES: usize = 4;
const SAND_LINES: usize = 9;

/// Room for the lines below the picture.
const SPARE_BYTES: usize = 64;

/// A dunlin that searches for food, line by line.
const BIRD: [&str; 4] = ["   __  ", "--(o \\_", "   \\__>", "    ||"];
const BIRD_WIDTH: usize = 10;

type Below<'r> = dyn FnMut(usize) -> usize + 'r;

fn shore(below: &mut Below<'_>) -> String {
    let mut lines = [[b' '; WIDTH]; SEA_LINES + SAND_LINES];
    for (depth, line) in lines.iter_mut().enumerate() {
        let (mark, distance) = if depth < SEA_LINES { (b'~', 2 + depth) } else { (b'.', 24) };
        scatter(line, mark, distance, below);
    }
    for column in (0..WIDTH / BIRD_WIDTH).map(|index| index * BIRD_WIDTH) {
        if below(3) > 0 {
            let line = SEA_LINES + below(SAND_LINES - BIRD.len());
            draw_bird(&mut lines[line..], column + below(BIRD_WIDTH - BIRD[0].len()));
        }
    }
    let mut text = String::with_capacity(lines.len() * (WIDTH + 1) + SPARE_BYTES);
    for line in &lines {
        text.push_str(&String::from_utf8_lossy(line.trim_ascii_end()));
        text.push('\n');
    }
    text.push_str("\nDunlins at low tide. ");
    text
}

/// Puts marks on a line, `distance` places apart on average: it takes fewer random numbers than places.
fn scatter(line: &mut [u8], mark: u8, distance: usize, below: &mut Below<'_>) {
    let mut column = below(distance);
    while let Some(place) = line.get_mut(column) {
        *place = mark;
        column += 1 + below(2 * distance - 1);
    }
}

fn draw_bird(lines: &mut [[u8; WIDTH]], column: usize) {
    for (row, drawn) in lines.iter_mut().zip(BIRD) {
        row[column..][..drawn.len()].copy_from_slice(drawn.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_picture_fits_its_frame() {
        for seed in 0..200 {
            let mut generator = fastrand::Rng::with_seed(seed);
            let text = shore(&mut |bound| generator.usize(..bound));
            assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        }
    }
}
