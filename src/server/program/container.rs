//! `dunlin container`: the entry point of the image, which takes the words and has the defaults of Redis's own image.
//!
//! Other machines reach a container only through the ports that it publishes. So the server listens on all addresses
//! and without protected mode, unless its settings say otherwise. The first word may be the name of a program, as in
//! `docker run IMAGE redis-server --save 60 1`.

use crate::engine::Settings;

/// The programs of an image, all of which are this one.
const PROGRAMS: &[&[u8]] = &[b"dunlin", b"redis-server", b"redis-check-rdb", b"redis-check-aof"];

/// The settings that a server in a container starts from.
pub(super) fn defaults() -> Settings {
    let bind = ["*", "-::*"].map(str::to_owned).to_vec();
    Settings { bind, protected_mode: false, ..Settings::default() }
}

/// The program that the words call, if they name one, and the words for it.
pub(super) fn called(words: &[Vec<u8>]) -> (Option<&Vec<u8>>, &[Vec<u8>]) {
    match words {
        [name, rest @ ..] if PROGRAMS.contains(&&name[..]) => (Some(name), rest),
        _ => (None, words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split_whitespace().map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn the_words_may_begin_with_a_program() {
        for (line, program, rest) in [
            ("redis-server --save 60 1", Some("redis-server"), "--save 60 1"),
            ("redis-check-rdb dump.rdb", Some("redis-check-rdb"), "dump.rdb"),
            ("--save 60 1", None, "--save 60 1"),
            ("/etc/redis.conf", None, "/etc/redis.conf"),
            ("", None, ""),
        ] {
            let line = words(line);
            let program = program.map(|name| name.as_bytes().to_vec());
            assert_eq!(called(&line), (program.as_ref(), &words(rest)[..]));
        }
    }
}
