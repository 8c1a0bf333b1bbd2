//! The command line, as of redis-server: `dunlin [file|-] [--directive value ...]`.
//!
//! Directives of the command line become lines after those of the file, so that they override it, and so that an error
//! in them is reported with its line and number. `-` as the first or the last argument reads lines from the standard
//! input, which come between the two.
//!
//! Source: the behaviour of Redis 8.0.6 with the command lines in the tests below.

use crate::resp::split_words;

/// The action that the command line requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// Print the version.
    Version,
    /// Print the help.
    Help,
    /// Run with these sources of settings.
    Run(Sources),
}

/// The sources of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The path of the configuration file, as given.
    pub file: Option<Vec<u8>>,
    /// Whether lines are read from the standard input.
    pub stdin: bool,
    /// The lines made from the directives of the command line.
    pub directives: Vec<u8>,
}

impl Sources {
    /// All lines in their order, given the contents of the file and of the standard input.
    pub fn text(&self, file: &[u8], stdin: &[u8]) -> Vec<u8> {
        let mut text = file.to_vec();
        let directives = (!self.directives.is_empty()).then_some(&self.directives[..]);
        for part in self.stdin.then_some(stdin).into_iter().chain(directives) {
            text.push(b'\n');
            text.extend_from_slice(part);
        }
        text
    }
}

/// Parses the words of a command line, without the program's name.
pub fn invocation(words: &[Vec<u8>]) -> Invocation {
    match words.first().map(Vec::as_slice) {
        Some(b"-v" | b"--version") => return Invocation::Version,
        Some(b"-h" | b"--help") => return Invocation::Help,
        _ => {}
    }
    let mut sources = Sources::default();
    let mut rest = words;
    if let [file, after @ ..] = words
        && !file.starts_with(b"-")
    {
        // Redis treats an empty name as no name.
        sources.file = (!file.is_empty()).then(|| file.clone());
        rest = after;
    }
    let from_file = words.len() - rest.len();
    let mut lines = Lines { text: Vec::new(), awaits_value: false };
    for (index, word) in rest.iter().enumerate() {
        let place = from_file + index;
        if word == b"-" && (place == 0 || place + 1 == words.len()) {
            sources.stdin = true;
        } else {
            lines.take(word, rest.get(index + 1).map(Vec::as_slice));
        }
    }
    sources.directives = lines.text;
    Invocation::Run(sources)
}

struct Lines {
    text: Vec<u8>,
    /// The last word named a directive and the next one is its value, even if it begins with `--`.
    awaits_value: bool,
}

impl Lines {
    fn take(&mut self, word: &[u8], next: Option<&[u8]>) {
        match word.strip_prefix(b"--") {
            Some(directive) if !self.awaits_value => self.begin(directive, next),
            _ => {
                quote(word, &mut self.text);
                self.text.push(b' ');
                self.awaits_value = false;
            }
        }
    }

    fn begin(&mut self, directive: &[u8], next: Option<&[u8]>) {
        if !self.text.is_empty() {
            self.text.push(b'\n');
        }
        self.text.extend_from_slice(directive);
        self.text.push(b' ');
        self.awaits_value = word_count(directive) == 1;
        // A program that composes a command line may leave `--save` without its points: this means none.
        if directive.eq_ignore_ascii_case(b"save") && next.is_none_or(|next| next.starts_with(b"--")) {
            self.text.extend_from_slice(b"\"\"");
            self.awaits_value = false;
        }
    }
}

fn word_count(text: &[u8]) -> usize {
    let (mut unquoted, mut words) = (Vec::new(), Vec::new());
    match split_words(text, &mut unquoted, &mut words) {
        Ok(()) => words.len(),
        Err(_) => 0,
    }
}

/// Appends `word` in quotes, so that it is read as one word.
fn quote(word: &[u8], text: &mut Vec<u8>) {
    text.push(b'"');
    for &byte in word {
        match byte {
            b'"' | b'\\' => text.extend_from_slice(&[b'\\', byte]),
            b'\n' => text.extend_from_slice(b"\\n"),
            b'\r' => text.extend_from_slice(b"\\r"),
            _ => text.push(byte),
        }
    }
    text.push(b'"');
}

/// The text that `--help` prints.
pub const HELP: &str = "\
dunlin: a server that answers as Redis 8.0

Usage: dunlin [file] [--directive value ...] [-]
       dunlin run [option ...] -- command [argument ...]
       dunlin ping [option ...]
       dunlin check [option ...] file
       dunlin container [program] [argument ...]

  file           a redis.conf; settings that this server does not support are reported in the log
  --directive    any directive of a redis.conf; overrides the file
  -              read further directives from the standard input
  -v, --version  print the version
  -h, --help     print this help
  run            runs a command with a server of its own; dunlin run --help
  ping           tells whether a server answers; dunlin ping --help
  check          tells whether a file of data can be loaded
  container      starts a server, or check, in a container: on all addresses, without protected mode

Examples:
  dunlin
  dunlin --port 7000
  dunlin --port 0 --unixsocket /tmp/dunlin.sock
  dunlin redis.conf --loglevel verbose
  echo 'requirepass secret' | dunlin -
";

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &[&str]) -> Sources {
        let words: Vec<Vec<u8>> = line.iter().map(|word| word.as_bytes().to_vec()).collect();
        match invocation(&words) {
            Invocation::Run(sources) => sources,
            other => panic!("{line:?} means {other:?}"),
        }
    }

    #[test]
    fn directives_become_lines() {
        let table: [(&[&str], &str); 11] = [
            (&[], ""),
            (&["--port", "7000", "--bind", "127.0.0.1", "::1"], "port \"7000\" \nbind \"127.0.0.1\" \"::1\" "),
            (&["--port 7000", "--timeout 3"], "port 7000 \ntimeout 3 "),
            (&["--requirepass", "--port", "--port", "1"], "requirepass \"--port\" \nport \"1\" "),
            (&["--save", "--port", "1"], "save \"\"\nport \"1\" "),
            (&["--port", "1", "--SAVE"], "port \"1\" \nSAVE \"\""),
            (&["--save", "900 1"], "save \"900 1\" "),
            (&["--port"], "port "),
            (&["-x"], "\"-x\" "),
            (&["--requirepass", "a\"b\\c\n"], "requirepass \"a\\\"b\\\\c\\n\" "),
            (&["--port=0"], "port=0 "),
        ];
        for (line, lines) in table {
            assert_eq!(String::from_utf8_lossy(&run(line).directives), lines, "{line:?}");
        }
    }

    #[test]
    fn the_first_word_may_name_a_file_and_the_first_or_last_word_standard_input() {
        let sources = run(&["a.conf", "--port", "1", "-"]);
        assert_eq!((sources.file.as_deref(), sources.stdin), (Some(&b"a.conf"[..]), true));
        assert!(run(&["-", "--port", "1"]).stdin);
        let unnamed = run(&["", "--port", "1"]);
        assert_eq!((unnamed.file, unnamed.directives.as_slice()), (None, &b"port \"1\" "[..]));
        assert_eq!(run(&["a.conf", "-", "--port", "1"]).directives, b"\"-\" \nport \"1\" ");
    }

    #[test]
    fn version_and_help_are_recognized_as_the_first_word() {
        for word in ["-v", "--version"] {
            assert_eq!(invocation(&[word.as_bytes().to_vec()]), Invocation::Version);
        }
        for word in ["-h", "--help"] {
            assert_eq!(invocation(&[word.as_bytes().to_vec()]), Invocation::Help);
        }
    }

    #[test]
    fn the_command_line_becomes_a_line_after_those_of_the_file() {
        assert_eq!(run(&["--port", "1"]).text(b"", b""), b"\nport \"1\" ");
        assert_eq!(run(&["a", "--port", "1", "-"]).text(b"x 1\n", b"y 2\n"), b"x 1\n\ny 2\n\nport \"1\" ");
    }
}
