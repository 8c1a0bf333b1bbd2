//! The manifest: the text that lists the files of an AOF.
//!
//! ```text
//! file appendonly.aof.2.base.rdb seq 2 type b
//! file appendonly.aof.1.incr.aof seq 1 type h startoffset 0 endoffset 6
//! file appendonly.aof.2.incr.aof seq 2 type i startoffset 6
//! ```
//!
//! A line has words in pairs: a key and what it says. Types are `b` for the base, `i` for an incremental file and `h`
//! for one that is no longer needed (history). Unknown keys and lines that begin with `#` are ignored, and are lost
//! when the manifest is written anew, as in Redis.
//!
//! Source: what Redis 8.0.6 prints when it starts with the manifests in the tests below.

use std::fmt::Write as _;

use thiserror::Error;

use super::leading_integer;
use crate::resp::{split_words, write_escaped};

/// The most bytes of a line, its line end among them.
const LINE_BYTES: usize = 1024;
/// The fewest words of a line: a name, a number and a type, each behind its key.
const FEWEST_WORDS: usize = 6;

/// The files of an AOF.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The data of the moment at which the first incremental file begins.
    pub base: Option<Listed>,
    /// Files that are no longer needed, and may be removed.
    pub history: Vec<Listed>,
    /// The commands since the base, in the order in which they are loaded.
    pub incrs: Vec<Listed>,
}

/// A file of an AOF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name in the folder of the AOF.
    pub name: String,
    /// Its number, from 1.
    pub sequence: i64,
    /// The offset of propagation at which it begins.
    pub start_offset: Option<i64>,
    /// The offset at which it ends, if it was ended in order.
    pub end_offset: Option<i64>,
}

/// Why a manifest is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{reason}")]
pub struct Fault {
    /// The number of the line from 1, and its text; `None` when the fault is not one of a line.
    pub line: Option<(usize, String)>,
    /// The reason why it is refused.
    pub reason: FaultReason,
}

/// A reason why a manifest is refused. The texts are Redis's.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum FaultReason {
    /// It has no line.
    #[error("Found an empty AOF manifest")]
    Empty,
    /// A line is no list of pairs, or lacks a name, a number or a type.
    #[error("Invalid AOF manifest file format")]
    Format,
    /// A type is none of the three.
    #[error("Unknown AOF file type")]
    UnknownType,
    /// A name contains a separator.
    #[error("File can't be a path, just a filename")]
    Path,
    /// There are two bases.
    #[error("Found duplicate base file information")]
    SecondBase,
    /// An incremental file does not have a greater number than the one before it.
    #[error("Found a non-monotonic sequence number")]
    Order,
    /// A line is too long, or the last one has no line end.
    #[error("The AOF manifest file contains too long line")]
    LongLine,
    /// The file cannot be read.
    #[error("Read AOF manifest failed")]
    Unreadable,
}

impl Fault {
    /// The lines that Redis logs about it.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec!["\n*** FATAL AOF MANIFEST FILE ERROR ***".to_owned()];
        if let Some((number, line)) = &self.line {
            lines.push(format!("Reading the manifest file, at line {number}"));
            lines.push(format!(">>> '{line}'"));
        }
        lines.push(self.reason.to_string());
        lines
    }
}

impl From<FaultReason> for Fault {
    fn from(reason: FaultReason) -> Fault {
        Fault { line: None, reason }
    }
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// The first line that is wrong, and why.
    pub fn parse(text: &[u8]) -> Result<Manifest, Fault> {
        let mut manifest = Manifest::default();
        let (mut rest, mut number) = (text, 0);
        while !rest.is_empty() {
            number += 1;
            let to_line_end = rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |end| end + 1);
            let (line, after) = rest.split_at(to_line_end.min(LINE_BYTES));
            rest = after;
            if line.starts_with(b"#") {
                continue;
            }
            // In C a NUL ends the text.
            let line = line.split(|&byte| byte == 0).next().unwrap_or_default();
            if !line.ends_with(b"\n") {
                return Err(FaultReason::LongLine.into());
            }
            let line = line.trim_ascii();
            manifest.take(line).map_err(|reason| {
                let line = String::from_utf8_lossy(line).into_owned();
                Fault { line: Some((number, line)), reason }
            })?;
        }
        if number == 0 { Err(FaultReason::Empty.into()) } else { Ok(manifest) }
    }

    /// Adds the file of a line.
    fn take(&mut self, line: &[u8]) -> Result<(), FaultReason> {
        let (kind, listed) = file_of(line)?;
        match kind {
            b'b' if self.base.is_some() => return Err(FaultReason::SecondBase),
            b'b' => self.base = Some(listed),
            b'h' => self.history.push(listed),
            b'i' if listed.sequence <= self.last_incr_sequence() => return Err(FaultReason::Order),
            b'i' => self.incrs.push(listed),
            _ => return Err(FaultReason::UnknownType),
        }
        Ok(())
    }

    /// The number of the last incremental file; 0 if there is none.
    pub fn last_incr_sequence(&self) -> i64 {
        self.incrs.last().map_or(0, |incr| incr.sequence)
    }

    /// Its text, as Redis writes it.
    pub fn text(&self) -> String {
        let history = self.history.iter().map(|listed| ('h', listed));
        let incrs = self.incrs.iter().map(|listed| ('i', listed));
        let mut text = String::new();
        for (kind, listed) in self.base.iter().map(|listed| ('b', listed)).chain(history).chain(incrs) {
            listed.write(kind, &mut text);
        }
        text
    }
}

impl Listed {
    /// A file without offsets.
    pub fn new(name: String, sequence: i64) -> Listed {
        Listed { name, sequence, start_offset: None, end_offset: None }
    }

    /// Appends its line.
    fn write(&self, kind: char, text: &mut String) {
        text.push_str("file ");
        write_name(&self.name, text);
        // Writing to a String never fails.
        let _ = write!(text, " seq {} type {kind}", self.sequence);
        if let Some(start_offset) = self.start_offset {
            let _ = write!(text, " startoffset {start_offset}");
            if let Some(end_offset) = self.end_offset {
                let _ = write!(text, " endoffset {end_offset}");
            }
        }
        text.push('\n');
    }
}

/// Appends a name, in quotes if it needs them.
fn write_name(name: &str, text: &mut String) {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'"' | b'\'');
    if !name.is_empty() && name.bytes().all(is_plain) {
        text.push_str(name);
        return;
    }
    let mut escaped = Vec::new();
    write_escaped(name.as_bytes(), &mut escaped);
    text.push('"');
    text.push_str(&String::from_utf8_lossy(&escaped));
    text.push('"');
}

/// The type and the file of a line.
fn file_of(line: &[u8]) -> Result<(u8, Listed), FaultReason> {
    let (mut text, mut spans) = (Vec::new(), Vec::new());
    split_words(line, &mut text, &mut spans).map_err(|_| FaultReason::Format)?;
    if spans.len() < FEWEST_WORDS || spans.len() % 2 != 0 {
        return Err(FaultReason::Format);
    }
    let words: Vec<&[u8]> = spans.iter().map(|span| &text[span.start..span.end]).collect();
    let (mut name, mut kind) = (None, None);
    let mut listed = Listed::new(String::new(), 0);
    let offset = |value| Some(leading_integer(value)).filter(|&offset| offset != -1);
    for pair in words.chunks_exact(2) {
        let (key, value) = (pair[0], pair[1]);
        match &*key.to_ascii_lowercase() {
            b"file" if value.contains(&b'/') => return Err(FaultReason::Path),
            b"file" => name = Some(String::from_utf8(value.to_vec()).map_err(|_| FaultReason::Format)?),
            b"seq" => listed.sequence = leading_integer(value),
            b"type" => kind = value.first().copied(),
            b"startoffset" => listed.start_offset = offset(value),
            b"endoffset" => listed.end_offset = offset(value),
            _ => {}
        }
    }
    match (name, kind, listed.sequence) {
        (None, ..) | (_, None, _) | (.., 0) => Err(FaultReason::Format),
        (Some(name), Some(kind), _) => Ok((kind, Listed { name, ..listed })),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BASE: &str = "file appendonly.aof.1.base.rdb seq 1 type b\n";
    const INCR: &str = "file appendonly.aof.1.incr.aof seq 1 type i\n";

    fn written_anew(text: &str) -> String {
        match Manifest::parse(text.as_bytes()) {
            Ok(manifest) => manifest.text(),
            Err(fault) => panic!("{text:?} is refused: {fault:?}"),
        }
    }

    fn refused(text: &[u8]) -> (Option<usize>, FaultReason) {
        let fault = Manifest::parse(text).expect_err("the manifest is wrong");
        (fault.line.map(|(number, _)| number), fault.reason)
    }

    #[test]
    fn what_redis_refuses_is_refused_at_the_same_line() {
        let long = |bytes| "a".repeat(bytes);
        let table: Vec<(String, Option<usize>, FaultReason)> = vec![
            (String::new(), None, FaultReason::Empty),
            ("\n".to_owned(), Some(1), FaultReason::Format),
            (format!("{BASE}\n{INCR}"), Some(2), FaultReason::Format),
            ("file a seq 0 type b\n".to_owned(), Some(1), FaultReason::Format),
            ("file a seq x type b\n".to_owned(), Some(1), FaultReason::Format),
            ("file a type b\n".to_owned(), Some(1), FaultReason::Format),
            ("file a seq 1\n".to_owned(), Some(1), FaultReason::Format),
            ("file a seq 1 type b x\n".to_owned(), Some(1), FaultReason::Format),
            ("file a seq 1 type \"\"\n".to_owned(), Some(1), FaultReason::Format),
            ("file \"a seq 1 type b\n".to_owned(), Some(1), FaultReason::Format),
            (" # x\n".to_owned(), Some(1), FaultReason::Format),
            ("file a seq 1 type z\n".to_owned(), Some(1), FaultReason::UnknownType),
            ("file d/a seq 1 type b\n".to_owned(), Some(1), FaultReason::Path),
            (BASE.repeat(2), Some(2), FaultReason::SecondBase),
            (format!("{BASE}file b seq 2 type i\nfile c seq 1 type i\n"), Some(3), FaultReason::Order),
            (format!("{BASE}file b seq 2 type i\nfile c seq 2 type i\n"), Some(3), FaultReason::Order),
            (format!("{BASE}file b seq -1 type i\n"), Some(2), FaultReason::Order),
            (INCR.trim_end().to_owned(), None, FaultReason::LongLine),
            (format!("file {} seq 1 type i\n", long(1100)), None, FaultReason::LongLine),
            ("file a\0b seq 1 type b\n".to_owned(), None, FaultReason::LongLine),
            (format!("#{}\n{BASE}", long(1100)), Some(2), FaultReason::Format),
            (format!("{BASE}#{}\n{INCR}", long(1023)), Some(3), FaultReason::Format),
        ];
        for (text, line, reason) in table {
            assert_eq!(refused(text.as_bytes()), (line, reason), "{text:?}");
        }
    }

    #[test]
    fn what_redis_reads_is_read() {
        let both = format!("{BASE}{INCR}");
        for text in [
            format!("{BASE}{INCR}"),
            format!("{INCR}{BASE}"),
            format!("# a comment\n{BASE}{INCR}"),
            format!("{BASE}#{}\n{INCR}", "a".repeat(1022)),
            format!("   {}  \r\n\t{INCR}", BASE.trim_end()),
            format!("FILE appendonly.aof.1.base.rdb SEQ 1x TYPE base\n{INCR}"),
            format!("zz y file x file \"appendonly.aof.1.base.rdb\" seq 1 type b new value\n{INCR}"),
            format!("{}file appendonly.aof.1.incr.aof seq 1 type i endoffset 6\n", BASE),
            format!("{}file appendonly.aof.1.incr.aof seq 1 type i startoffset -1\n", BASE),
        ] {
            let manifest = written_anew(&text);
            assert_eq!(manifest.replace(" endoffset 6", ""), both, "{text:?}");
        }
        assert_eq!(written_anew("# no file\n"), "");
    }

    #[test]
    fn files_are_written_in_the_order_base_history_and_incremental() {
        let text = "file i seq 9 type i startoffset 5 endoffset 6\nfile h seq 2 type h\nfile g seq 1 type h\n\
                    file b seq -3 type b\n";
        let sorted = "file b seq -3 type b\nfile h seq 2 type h\nfile g seq 1 type h\n\
                      file i seq 9 type i startoffset 5 endoffset 6\n";
        assert_eq!(written_anew(text), sorted);
    }

    #[test]
    fn a_fault_is_reported_in_the_lines_of_redis() {
        let fault = Manifest::parse(b"\t file a seq 0 type b \r\n").expect_err("there is no file 0");
        assert_eq!(
            fault.lines(),
            [
                "\n*** FATAL AOF MANIFEST FILE ERROR ***",
                "Reading the manifest file, at line 1",
                ">>> 'file a seq 0 type b'",
                "Invalid AOF manifest file format",
            ]
        );
        assert_eq!(
            Manifest::parse(b"").expect_err("it is empty").lines(),
            ["\n*** FATAL AOF MANIFEST FILE ERROR ***", "Found an empty AOF manifest"]
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_it_was(
            names in proptest::collection::vec("[^/]{1,12}", 3),
            sequences in (1_i64..99, 1_i64..99),
            offsets in proptest::option::of((0_i64..9, proptest::option::of(0_i64..9))),
        ) {
            let incr = Listed {
                start_offset: offsets.map(|(start, _)| start),
                end_offset: offsets.and_then(|(_, end)| end),
                ..Listed::new(names[2].clone(), sequences.1)
            };
            let manifest = Manifest {
                base: Some(Listed::new(names[0].clone(), sequences.0)),
                history: vec![Listed::new(names[1].clone(), sequences.1)],
                incrs: vec![incr],
            };
            prop_assert_eq!(Manifest::parse(manifest.text().as_bytes()), Ok(manifest));
        }

        #[test]
        fn no_text_makes_it_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(manifest) = Manifest::parse(&text) {
                prop_assert_eq!(
                    Manifest::parse(manifest.text().as_bytes()).map_or_else(|fault| fault.reason, |_| FaultReason::Empty),
                    FaultReason::Empty
                );
            }
        }
    }
}
