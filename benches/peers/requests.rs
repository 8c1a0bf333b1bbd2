//! Requests made from templates, so that the requests of a usage pattern are written in one line.
//!
//! An operation is one or more commands that a client sends together. A template is the words of one command, separated
//! by blanks. In a word, `{key}` is a number below the workload's number of keys, the same in all commands of one
//! operation; `{random}` is one of nine digits; `{serial}` counts operations; `{moment}` is a time in microseconds that
//! advances with each operation; `{script}` is the name of the workload's script.

use fastrand::Rng;

/// 2026-07-02 17:00:41 UTC, the first value of `{moment}`.
const FIRST_MOMENT: u64 = 1_783_011_641_000_000;

/// Makes the commands of one operation repeatedly.
pub struct Requests {
    commands: Vec<Vec<Vec<Piece>>>,
    keys: u64,
    rng: Rng,
    serial: u64,
    word: Vec<u8>,
}

enum Piece {
    Text(String),
    Key,
    Random,
    Serial,
    Moment,
}

impl Requests {
    /// The same seed makes the same requests.
    pub fn new(templates: &[&str], keys: u64, script: &str, seed: u64) -> Requests {
        let words =
            |template: &&str| template.split(' ').map(|word| pieces(&word.replace("{script}", script))).collect();
        Requests {
            commands: templates.iter().map(words).collect(),
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
        let key = self.rng.u64(0..self.keys);
        self.serial += 1;
        for command in &self.commands {
            write_header(out, b'*', command.len());
            for word in command {
                self.word.clear();
                for piece in word {
                    let number = match piece {
                        Piece::Text(text) => {
                            self.word.extend_from_slice(text.as_bytes());
                            continue;
                        }
                        Piece::Key => key,
                        Piece::Random => self.rng.u64(100_000_000..1_000_000_000),
                        Piece::Serial => self.serial,
                        Piece::Moment => FIRST_MOMENT + self.serial,
                    };
                    self.word.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
                }
                write_header(out, b'$', self.word.len());
                out.extend_from_slice(&self.word);
                out.extend_from_slice(b"\r\n");
            }
        }
    }
}

fn write_header(out: &mut Vec<u8>, kind: u8, count: usize) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn pieces(word: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while let Some((before, hole, after)) =
        rest.split_once('{').and_then(|(before, rest)| rest.split_once('}').map(|(hole, after)| (before, hole, after)))
    {
        pieces.push(Piece::Text(before.to_owned()));
        pieces.push(match hole {
            "key" => Piece::Key,
            "random" => Piece::Random,
            "serial" => Piece::Serial,
            "moment" => Piece::Moment,
            other => Piece::Text(format!("{{{other}}}")),
        });
        rest = after;
    }
    pieces.push(Piece::Text(rest.to_owned()));
    pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
    pieces
}
