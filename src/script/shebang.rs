//! The first line of a script or library: `#!lua name=mylib flags=no-writes,allow-oom`.
//!
//! A script without one runs by the old rules: it may do everything, and each of its commands is checked when it
//! runs.

use thiserror::Error;

use crate::resp::{Request, split_words};

/// The contents of a first line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Whether the script began with `#!`.
    pub is_there: bool,
    /// The script writes nothing (`no-writes`).
    pub no_writes: bool,
    /// The script may run when memory is full (`allow-oom`).
    pub allow_oom: bool,
    /// The script may run while data may be out of date (`allow-stale`).
    pub allow_stale: bool,
    /// The script does not run in a cluster (`no-cluster`).
    pub no_cluster: bool,
    /// The script may access keys of several slots (`allow-cross-slot-keys`).
    pub allow_cross_slot: bool,
}

/// The faults of a first line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "each is its text")]
pub enum ShebangError {
    #[error("Invalid script shebang")]
    Endless,
    #[error("Invalid engine in script shebang")]
    NoEngine,
    #[error("Unexpected engine in script shebang: {0}")]
    Engine(String),
    #[error("Unknown lua shebang option: {0}")]
    Option(String),
    #[error("Unexpected flag in script shebang: {0}")]
    Flag(String),
}

impl Header {
    /// Sets the flag with that name; false if there is none.
    pub fn set(&mut self, flag: &[u8]) -> bool {
        let place = match flag {
            b"no-writes" => &mut self.no_writes,
            b"allow-oom" => &mut self.allow_oom,
            b"allow-stale" => &mut self.allow_stale,
            b"no-cluster" => &mut self.no_cluster,
            b"allow-cross-slot-keys" => &mut self.allow_cross_slot,
            _ => return false,
        };
        *place = true;
        true
    }

    /// Reads the first line of a script and returns how many bytes of it are not Lua. The line's end is Lua, so that
    /// line numbers are those of the source.
    ///
    /// # Errors
    /// [`ShebangError`].
    pub fn read(source: &[u8]) -> Result<(Header, usize), ShebangError> {
        let mut header = Header::default();
        if !source.starts_with(b"#!") {
            return Ok((header, 0));
        }
        let end = source.iter().position(|&byte| byte == b'\n').ok_or(ShebangError::Endless)?;
        header.is_there = true;
        let (mut text, mut spans) = (Vec::new(), Vec::new());
        split_words(&source[..end], &mut text, &mut spans).map_err(|_| ShebangError::NoEngine)?;
        let words: Vec<&[u8]> = Request::new(&text, &spans).iter().collect();
        let (engine, options) = words.split_first().ok_or(ShebangError::NoEngine)?;
        if *engine != b"#!lua" {
            return Err(ShebangError::Engine(super::latin(engine)));
        }
        for option in options {
            let flags = option.strip_prefix(b"flags=").ok_or_else(|| ShebangError::Option(super::latin(option)))?;
            if flags.is_empty() {
                continue;
            }
            for flag in flags.split(|&byte| byte == b',') {
                if !header.set(flag) {
                    return Err(ShebangError::Flag(super::latin(flag)));
                }
            }
        }
        Ok((header, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_without_a_shebang_is_unchanged() {
        assert_eq!(Header::read(b"return 1"), Ok((Header::default(), 0)));
    }

    #[test]
    fn a_shebang_sets_flags_and_the_source_keeps_its_line_numbers() {
        let (header, skipped) = Header::read(b"#!lua flags=no-writes,allow-oom\nreturn 1").expect("it is right");
        assert!(header.is_there && header.no_writes && header.allow_oom && !header.allow_stale);
        assert_eq!(skipped, 31);
    }

    #[test]
    fn errors_of_a_shebang_are_reported() {
        let error = |source: &[u8]| Header::read(source).expect_err("it is wrong").to_string();
        assert_eq!(error(b"#!lua"), "Invalid script shebang");
        assert_eq!(error(b"#!lua 'x\n"), "Invalid engine in script shebang");
        assert_eq!(error(b"#!python\n"), "Unexpected engine in script shebang: #!python");
        assert_eq!(error(b"#!lua name=x\n"), "Unknown lua shebang option: name=x");
        assert_eq!(error(b"#!lua flags=no-writes,\n"), "Unexpected flag in script shebang: ");
    }
}
