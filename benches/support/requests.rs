//! Requests made from templates, so that the requests of a usage pattern are written in one line.
//!
//! A template is words between blanks; a word with blanks in it is in double quotes, where `\n` is the end of a line.
//! Within a word:
//!
//! - `{key}` is a number below the workload's number of keys, `{key:N}` one below N, the same in all commands of one
//!   operation;
//! - `{random}` is a number of nine digits, `{random:N}` one below N, another one each time;
//! - `{serial}` counts operations, and `{moment}` is a time in microseconds that goes on with each operation;
//! - `{value:N}` is a text of N bytes, the same each time;
//! - `{longitude}` and `{latitude}` are a random place on Earth;
//! - any other name is a text given by the caller, such as `{script}`.
//!
//! `[words]*N` stands for N repetitions of the words: `{n}` is the number of the repetition from 0, and `{item}`
//! continues from operation to operation.

use fastrand::Rng;

/// 2026-07-02 17:00:41 UTC, where `{moment}` begins.
const FIRST_MOMENT: u64 = 1_783_011_641_000_000;

/// Makes the commands of one operation repeatedly.
#[derive(Clone)]
pub struct Requests {
    commands: Vec<Vec<Words>>,
    keys: u64,
    rng: Rng,
    serial: u64,
    word: Vec<u8>,
}

/// Words that are repeated together.
#[derive(Clone)]
struct Words {
    words: Vec<Vec<Piece>>,
    repetitions: u64,
}

#[derive(Clone)]
enum Piece {
    Text(Vec<u8>),
    Key(Option<u64>),
    Random(Option<u64>),
    Serial,
    Moment,
    Number,
    Item,
    Longitude,
    Latitude,
}

impl Requests {
    /// Makes requests of the templates; the same seed makes the same requests. `texts` are names and their texts.
    pub fn new(templates: &[&str], keys: u64, texts: &[(&str, &[u8])], seed: u64) -> Requests {
        Requests {
            commands: templates.iter().map(|template| parsed(template, texts)).collect(),
            keys,
            rng: Rng::with_seed(seed),
            serial: 0,
            word: Vec::new(),
        }
    }

    /// The number of commands in an operation.
    pub fn commands_per_operation(&self) -> usize {
        self.commands.len()
    }

    /// Appends the bytes of one operation.
    pub fn write_operation(&mut self, out: &mut Vec<u8>) {
        let chosen = self.rng.u64(..);
        self.serial += 1;
        for number in 0..self.commands.len() {
            self.write_command(number, chosen, out);
        }
    }

    /// The commands of one operation, each by itself.
    pub fn next_operation(&mut self) -> Vec<Vec<u8>> {
        let chosen = self.rng.u64(..);
        self.serial += 1;
        let count = self.commands.len();
        let command = |number| {
            let mut bytes = Vec::new();
            self.write_command(number, chosen, &mut bytes);
            bytes
        };
        (0..count).map(command).collect()
    }

    fn write_command(&mut self, number: usize, chosen: u64, out: &mut Vec<u8>) {
        let Requests { commands, keys, rng, serial, word } = self;
        let command = &commands[number];
        let count: u64 = command.iter().map(|part| part.words.len() as u64 * part.repetitions).sum();
        write_head(out, b'*', count);
        for part in command {
            for repetition in 0..part.repetitions {
                for pieces in &part.words {
                    word.clear();
                    for piece in pieces {
                        let number = match piece {
                            Piece::Text(text) => {
                                word.extend_from_slice(text);
                                continue;
                            }
                            Piece::Longitude => degrees(rng, 360, word),
                            Piece::Latitude => degrees(rng, 170, word),
                            Piece::Key(below) => chosen % below.unwrap_or(*keys),
                            Piece::Random(None) => rng.u64(100_000_000..1_000_000_000),
                            Piece::Random(Some(below)) => rng.u64(0..*below),
                            Piece::Serial => *serial,
                            Piece::Moment => FIRST_MOMENT + *serial,
                            Piece::Number => repetition,
                            Piece::Item => (*serial - 1) * part.repetitions + repetition,
                        };
                        word.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
                    }
                    write_head(out, b'$', word.len() as u64);
                    out.extend_from_slice(word);
                    out.extend_from_slice(b"\r\n");
                }
            }
        }
    }
}

/// Appends a random number of degrees but for its last digits, within half of `range` on both sides of zero; returns
/// the last digits.
fn degrees(rng: &mut Rng, range: u64, word: &mut Vec<u8>) -> u64 {
    if rng.bool() {
        word.push(b'-');
    }
    let whole = rng.u64(0..range / 2);
    word.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
    word.push(b'.');
    rng.u64(100_000..1_000_000)
}

fn write_head(out: &mut Vec<u8>, kind: u8, count: u64) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn parsed(template: &str, texts: &[(&str, &[u8])]) -> Vec<Words> {
    let mut parts = vec![Words { words: Vec::new(), repetitions: 1 }];
    let words = split(template);
    for (index, word) in words.iter().enumerate() {
        let closed = closing(word);
        let mut inner = closed.map_or(word.as_str(), |(inner, _)| inner);
        // Only what is closed somewhere is open: `[a` alone is a bound of ZRANGEBYLEX.
        if let Some(opened) =
            inner.strip_prefix('[').filter(|_| words[index..].iter().any(|word| closing(word).is_some()))
        {
            parts.push(Words { words: Vec::new(), repetitions: 1 });
            inner = opened;
        }
        let part = parts.last_mut().expect("the first is never removed");
        part.words.push(pieces(inner, texts));
        if let Some((_, repetitions)) = closed {
            part.repetitions = repetitions;
            parts.push(Words { words: Vec::new(), repetitions: 1 });
        }
    }
    parts
}

/// The rest of a word that ends repeated words, and the number of repetitions.
fn closing(word: &str) -> Option<(&str, u64)> {
    let (inner, count) = word.rsplit_once("]*")?;
    Some((inner, count.parse().ok()?))
}

/// The words of a template, without their quotes.
fn split(template: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = template.trim_start();
    while !rest.is_empty() {
        let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        let (word, after) = match quoted {
            Some((word, after)) => (word.replace("\\n", "\n"), after),
            None => rest.split_once(' ').map_or((rest.to_owned(), ""), |(word, after)| (word.to_owned(), after)),
        };
        words.push(word);
        rest = after.trim_start();
    }
    words
}

fn pieces(word: &str, texts: &[(&str, &[u8])]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while let Some((before, hole, after)) =
        rest.split_once('{').and_then(|(before, rest)| rest.split_once('}').map(|(hole, after)| (before, hole, after)))
    {
        pieces.push(Piece::Text(before.into()));
        pieces.push(piece(hole, texts));
        rest = after;
    }
    pieces.push(Piece::Text(rest.into()));
    pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
    pieces
}

fn piece(hole: &str, texts: &[(&str, &[u8])]) -> Piece {
    let (name, count) = match hole.split_once(':').map(|(name, count)| (name, count.parse().ok())) {
        Some((name, Some(count))) => (name, Some(count)),
        _ => (hole, None),
    };
    match (name, count) {
        ("key", below) => Piece::Key(below),
        ("random", below) => Piece::Random(below),
        ("serial", None) => Piece::Serial,
        ("moment", None) => Piece::Moment,
        ("n", None) => Piece::Number,
        ("item", None) => Piece::Item,
        ("longitude", None) => Piece::Longitude,
        ("latitude", None) => Piece::Latitude,
        ("value", Some(bytes)) => Piece::Text(value(bytes)),
        _ => texts
            .iter()
            .find(|(name, _)| *name == hole)
            .map_or_else(|| Piece::Text(format!("{{{hole}}}").into()), |(_, text)| Piece::Text(text.to_vec())),
    }
}

/// A text of letters and digits that does not compress to nothing.
fn value(bytes: u64) -> Vec<u8> {
    let mut rng = Rng::with_seed(bytes);
    (0..bytes).map(|_| rng.alphanumeric() as u8).collect()
}
