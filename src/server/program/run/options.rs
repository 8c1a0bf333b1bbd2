//! The command line of `dunlin run`: options and directives, then `--`, then the command, which is not read.

use std::ffi::OsString;
use std::time::Duration;

use crate::config::{self, Invocation, Sources};
use crate::engine::state::kit::Level;
use crate::server::program::polling::seconds;

/// The text that `dunlin run --help` prints.
pub(super) const HELP: &str = "\
dunlin run: runs a command with a server of its own, which ends with the command

Usage: dunlin run [file] [option ...] [--directive value ...] -- command [argument ...]
       eval \"$(dunlin run [file] [option ...] [--directive value ...] --export)\"

  --env name       sets one more variable to the URL of the server
  --env-only name  sets only this variable, and not those that --print-env shows
  --print-env      prints the variables that the command would get, and ends
  --export         starts a server for the shell instead, prints the variables as lines that a shell runs, and ends; the
                   server ends with the shell, or with the process that --end-with names
  --strict level   error: strict mode refuses what it finds, and a command that passes fails with 1 if it found anything
                   warn: what it finds is printed
  --dump file      writes the data that the command has left, as text
  --journal file   writes the commands that clients have sent, and their replies, as a transcript
  --page           serves the page for the browser, and prints its address on the standard error
  --linger seconds waits that long for clients that are left when the command has ended
  --verbose        writes the server's log to the standard error; otherwise it has none unless there is a logfile
  --directive      any directive of a redis.conf; test-kit is yes, and the port a free one

The exit status is that of the command, or 128 and the number of the signal that ended it; 127 if it is not found, 126 if it
cannot be executed, 125 if the server cannot be started.

Examples:
  dunlin run -- pytest
  dunlin run --env CACHE_URL -- npm test
  dunlin run --load fixture.txt --strict error -- ./bin/rails test
  eval \"$(dunlin run --export)\"
";

/// The meaning of a command line.
#[derive(Debug)]
pub(super) enum Call {
    Help,
    Run(Options),
}

/// The options of a run.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// The variables that get the URL of the server.
    pub(super) names: Vec<String>,
    /// Whether `names` are all variables that are set.
    pub(super) only_names: bool,
    pub(super) prints_env: bool,
    /// Whether the server is for the shell that has started this process, and there is no command.
    pub(super) exports: bool,
    /// The level of the rules of strict mode, if they are to be set.
    pub(super) strict: Option<Level>,
    /// The path of the file that the data are written to, empty for none.
    pub(super) dump: String,
    /// The path of the file that the commands of clients are written to, empty for none.
    pub(super) journal: String,
    /// The longest time that clients may stay when the command has ended.
    pub(super) linger: Duration,
    pub(super) is_verbose: bool,
    /// Whether the page is served, and its address printed.
    pub(super) shows_page: bool,
    /// Where the settings of the server come from.
    pub(super) sources: Sources,
    /// The command and its arguments.
    pub(super) command: Vec<OsString>,
}

/// Reads the words behind `dunlin run`.
///
/// # Errors
/// A sentence that says what is wrong.
pub(super) fn parse(words: Vec<OsString>) -> Result<Call, String> {
    if words.first().is_some_and(|word| word == "--help" || word == "-h") {
        return Ok(Call::Help);
    }
    let separator = words.iter().position(|word| word == "--");
    let before: Vec<OsString> = words.iter().take(separator.unwrap_or(words.len())).cloned().collect();
    let mut options = Options::default();
    let mut directives = Vec::new();
    let mut rest = before.into_iter().map(OsString::into_encoded_bytes);
    while let Some(word) = rest.next() {
        let mut value = || {
            let value = rest.next().and_then(|value| String::from_utf8(value).ok());
            value.ok_or_else(|| format!("{} needs a value", String::from_utf8_lossy(&word)))
        };
        match word.as_slice() {
            b"--env" => options.names.push(variable(value()?)?),
            b"--env-only" => {
                options.names.push(variable(value()?)?);
                options.only_names = true;
            }
            b"--print-env" => options.prints_env = true,
            b"--export" => options.exports = true,
            b"--strict" => options.strict = Some(level(&value()?)?),
            b"--dump" => options.dump = value()?,
            b"--journal" => options.journal = value()?,
            b"--linger" => options.linger = linger(&value()?)?,
            b"--page" => options.shows_page = true,
            b"--verbose" => options.is_verbose = true,
            _ => directives.push(word),
        }
    }
    options.command = separator.map_or_else(Vec::new, |separator| words[separator + 1..].to_vec());
    if options.exports {
        check_export(&options)?;
    } else if options.command.is_empty() && !options.prints_env {
        return Err(missing_command(&words, separator));
    }
    match config::invocation(&directives) {
        Invocation::Run(Sources { stdin: true, .. }) => {
            Err("'-' cannot be used here: the standard input is the command's".to_owned())
        }
        Invocation::Run(sources) => Ok(Call::Run(Options { sources, ..options })),
        Invocation::Version | Invocation::Help => Ok(Call::Help),
    }
}

/// Checks that the options make sense for a shell, to which all variables are given as lines of its language.
///
/// # Errors
/// A sentence that says which do not.
fn check_export(options: &Options) -> Result<(), String> {
    let is_of_shell = |name: &&String| {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        !name.starts_with(|first: char| first.is_ascii_digit()) && name.chars().all(is_letter)
    };
    if let Some(name) = options.names.iter().find(|name| !is_of_shell(name)) {
        return Err(format!("'{name}' cannot be a variable of a shell"));
    }
    match () {
        () if !options.command.is_empty() => Err("--export takes no command: the server is for the shell".to_owned()),
        () if options.linger > Duration::ZERO => Err("--linger cannot be used with --export".to_owned()),
        () if options.prints_env => Err("--print-env cannot be used with --export".to_owned()),
        () => Ok(()),
    }
}

/// The text for a command line without a command.
fn missing_command(words: &[OsString], separator: Option<usize>) -> String {
    match words {
        [first, ..] if separator.is_none() && !first.as_encoded_bytes().starts_with(b"-") => {
            let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
            format!("'--' comes before the command: dunlin run -- {}", words.join(" "))
        }
        _ => "there is no command: dunlin run [option ...] -- command [argument ...]".to_owned(),
    }
}

/// A name that a variable can have.
fn variable(name: String) -> Result<String, String> {
    if name.is_empty() || name.contains(['=', '\0']) { Err(format!("'{name}' names no variable")) } else { Ok(name) }
}

fn level(word: &str) -> Result<Level, String> {
    let known = Level::of(word.as_bytes()).filter(|level| *level != Level::Off);
    known.ok_or_else(|| format!("--strict takes error or warn, and not '{word}'"))
}

fn linger(word: &str) -> Result<Duration, String> {
    seconds(word).ok_or_else(|| format!("--linger takes seconds, and not '{word}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Call, String> {
        parse(line.split_ascii_whitespace().map(OsString::from).collect())
    }

    fn options(line: &str) -> Options {
        match parsed(line) {
            Ok(Call::Run(options)) => options,
            other => panic!("{line} means {other:?}"),
        }
    }

    #[test]
    fn everything_behind_the_separator_is_the_command() {
        let options =
            options("a.conf --env A --port 7000 --env B --strict WARN --verbose --page -- npm run --env -- x");
        assert_eq!(options.command, ["npm", "run", "--env", "--", "x"]);
        assert_eq!((options.names, options.only_names), (vec!["A".to_owned(), "B".to_owned()], false));
        assert_eq!((options.strict, options.is_verbose, options.shows_page), (Some(Level::Warn), true, true));
        assert_eq!(
            (options.sources.file.as_deref(), &*options.sources.directives),
            (Some(&b"a.conf"[..]), &b"port \"7000\" "[..])
        );
    }

    #[test]
    fn a_missing_separator_is_reported_with_the_line_that_works() {
        let why = parsed("npm test").expect_err("it has no separator");
        assert_eq!(why, "'--' comes before the command: dunlin run -- npm test");
        for line in ["", "--port 7000 npm", "--env A --"] {
            assert!(parsed(line).expect_err("it has no command").starts_with("there is no command"), "{line}");
        }
        assert!(options("--print-env").command.is_empty());
    }

    #[test]
    fn an_export_has_no_command_and_names_that_a_shell_can_have() {
        assert!(options("--export --env _A1 --port 7000").exports);
        for line in ["--export -- a", "--export --linger 1", "--export --env A-B", "--export --env-only 1A"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn invalid_options_are_refused() {
        for line in [
            "--linger -1 -- a",
            "--linger 5s -- a",
            "--journal -- a",
            "--env -- a",
            "--env",
            "--strict off -- a",
            "--strict x -- a",
            "--env A=B -- a",
            "- -- a",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
