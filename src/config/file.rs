//! The parser of configuration files.
//!
//! A line is a parameter's name and its value, which may be several words and may be quoted as in an inline request.
//! Blank lines and lines that begin with `#` are skipped. `include` inserts other files, whose lines are numbered
//! separately. If a parameter occurs twice, the last line is used.
//!
//! The parser opens no file and changes no directory: it calls [`Files`] for that. Directives of the command line are
//! parsed here as well, as lines that [`super::invocation`] makes.
//!
//! Source: the replies of Redis 8.0.6 to files with the faults in the tests below.

use std::fmt;

use super::parameter::{Assigned, OnUnsupported, Parameter, unsupported};
use super::users;
use crate::engine::state::measures::{MAX_MEASURES, Measure};
use crate::engine::{REDIS_VERSION, SavePoint, Settings, Table};
use crate::resp::split_words;

/// Access to the file system for a configuration file.
pub trait Files {
    /// The texts of the files that match the path or pattern of an `include`, ordered by name. A pattern without a
    /// match gives no file.
    ///
    /// # Errors
    /// A file cannot be read: its path and the reason.
    fn read(&mut self, pattern: &str) -> Result<Vec<Vec<u8>>, Unreadable>;

    /// Changes the working directory and returns its full path.
    ///
    /// # Errors
    /// The system's reason.
    fn enter(&mut self, directory: &str) -> Result<String, String>;
}

/// A file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The path of the file.
    pub path: String,
    /// The system's reason.
    pub reason: String,
}

/// The result of reading a configuration.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// Warnings for the log, about values that have no effect.
    pub warnings: Vec<String>,
}

/// The reason why the server cannot start with a configuration. `Display` writes the text that Redis prints before it
/// exits with
/// 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fatal {
    /// A file cannot be read.
    Unreadable(Unreadable),
    /// A line is wrong.
    Line {
        /// The number of the line in its file, from 1.
        number: usize,
        /// The line without blanks around it.
        line: String,
        /// The error.
        reason: String,
    },
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fatal::Unreadable(Unreadable { path, reason }) => {
                write!(f, "Fatal error, can't open config file '{path}': {reason}")
            }
            Fatal::Line { number, line, reason } => {
                writeln!(f, "\n*** FATAL CONFIG FILE ERROR (Redis {REDIS_VERSION}) ***")?;
                writeln!(f, "Reading the configuration file, at line {number}")?;
                write!(f, ">>> '{line}'\n{reason}")
            }
        }
    }
}

impl std::error::Error for Fatal {}

/// The maximum depth of nested includes.
const DEEPEST: usize = 16;

/// Parses the lines of `text` into `settings`, which keep their values for what the text does not set. `commands` is
/// the table for lines that name commands.
///
/// # Errors
/// The first line that is invalid or requests something that this server cannot be, or the first file that
/// cannot be read.
pub fn load(settings: Settings, text: &[u8], files: &mut dyn Files, commands: &Table) -> Result<Loaded, Fatal> {
    let mut loader = Loader { loaded: Loaded { settings, ..Loaded::default() }, files, commands };
    loader.load(text, 0)?;
    Ok(loader.loaded)
}

/// Whether `announce` is on, by the lines of a text that can be parsed: a faulty configuration is announced, too.
pub fn is_announced(text: &[u8]) -> bool {
    let mut settings = Settings::default();
    for line in text.split(|&byte| byte == b'\n') {
        let Ok(words) = words_of(trimmed(line)) else { continue };
        if let [name, value] = &words[..]
            && let Some((parameter, "announce")) = super::find(name)
        {
            // A value that is neither yes nor no leaves it as it is.
            let _ = parameter.assign_text(&mut settings, value);
        }
    }
    settings.process.launch.is_announced
}

struct Loader<'a> {
    loaded: Loaded,
    files: &'a mut dyn Files,
    commands: &'a Table,
}

impl Loader<'_> {
    fn load(&mut self, text: &[u8], depth: usize) -> Result<(), Fatal> {
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = trimmed(line);
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            self.take_line(line, depth).map_err(|fault| match fault {
                Fault::Fatal(fatal) => fatal,
                Fault::Reason(reason) => {
                    Fatal::Line { number: index + 1, line: String::from_utf8_lossy(line).into_owned(), reason }
                }
            })?;
        }
        Ok(())
    }

    fn take_line(&mut self, line: &[u8], depth: usize) -> Result<(), Fault> {
        let words = words_of(line)?;
        let [name, values @ ..] = &words[..] else { return Ok(()) };
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        if let Some((parameter, _)) = super::find(name) {
            return self.assign(parameter, &values);
        }
        match (name.to_ascii_lowercase().as_str(), &values[..]) {
            ("include", [pattern]) => self.include(pattern, depth + 1),
            (name, [_]) if IGNORED.contains(&name) => Ok(()),
            ("user", [_, ..]) => Ok(users::declare(&mut self.loaded.settings, &words, self.commands)?),
            ("rename-command", [name, called]) => self.rename(name, called),
            ("measure", [_, ..]) => self.measure(&values),
            (name @ "loadmodule", [_, ..]) => Err(format!("'{name}' is not supported").into()),
            _ => Err("Bad directive or wrong number of arguments".to_owned().into()),
        }
    }

    fn assign(&mut self, parameter: &Parameter, values: &[&str]) -> Result<(), Fault> {
        let save_points = self.loaded.settings.files.save_points.clone();
        let assigned = parameter.assign_words(&mut self.loaded.settings, values)?;
        self.keep_save_points(save_points, parameter.name, values);
        if parameter.name == "dir" {
            self.loaded.settings.directory = self.files.enter(&self.loaded.settings.directory)?;
        }
        match (assigned, parameter.on_unsupported) {
            (Assigned::InForce, _) => Ok(()),
            (Assigned::Differs { actual, .. }, OnUnsupported::Refuse) => Err(unsupported(actual).into()),
            (Assigned::Differs { actual, .. }, OnUnsupported::Warn) => {
                let name = parameter.name;
                let warning = format!("the value given for '{name}' has no effect, this server goes by '{actual}'");
                if !self.loaded.warnings.contains(&warning) {
                    self.loaded.warnings.push(warning);
                }
                Ok(())
            }
        }
    }

    /// Keeps the save points of the lines before: each `save` adds some, and only an empty one removes them.
    fn keep_save_points(&mut self, mut before: Vec<SavePoint>, name: &str, values: &[&str]) {
        if name == "save" && values != [""] {
            let points = &mut self.loaded.settings.files_mut().save_points;
            before.append(points);
            *points = before;
        }
    }

    fn rename(&mut self, name: &str, called: &str) -> Result<(), Fault> {
        let renames = &mut self.loaded.settings.renames;
        renames.push((name.to_owned(), called.to_owned()));
        Ok(self.commands.clone().renamed(renames).map(drop).map_err(str::to_owned)?)
    }

    fn measure(&mut self, words: &[&str]) -> Result<(), Fault> {
        const USAGE: &str = "a measure is 'queue name key [processing key] [failed key]', 'set name key' or \
                             'zset name key [seconds|milliseconds] [processing key]'";
        let measure = Measure::parse(words.iter().map(|word| word.as_bytes()), 0).ok_or(USAGE.to_owned())?;
        if measure.database != 0 {
            return Err("a measure of the configuration is of database 0".to_owned().into());
        }
        let measures = &mut self.loaded.settings.process_mut().measures;
        measures.retain(|known| known.name != measure.name);
        measures.push(measure);
        if measures.len() > MAX_MEASURES {
            Err(format!("there are {MAX_MEASURES} measures at most").into())
        } else {
            Ok(())
        }
    }

    fn include(&mut self, pattern: &str, depth: usize) -> Result<(), Fault> {
        if depth > DEEPEST {
            return Err(format!("files include one another more than {DEEPEST} deep").into());
        }
        for text in self.files.read(pattern).map_err(Fatal::Unreadable)? {
            self.load(&text, depth)?;
        }
        Ok(())
    }
}

/// Names that Redis still accepts but ignores.
const IGNORED: [&str; 4] =
    ["io-threads-do-reads", "list-max-ziplist-entries", "list-max-ziplist-value", "lua-replicate-commands"];

/// The reason why a line was refused: its own, or one that already has a line number.
enum Fault {
    Reason(String),
    Fatal(Fatal),
}

impl From<String> for Fault {
    fn from(reason: String) -> Fault {
        Fault::Reason(reason)
    }
}

impl From<Fatal> for Fault {
    fn from(fatal: Fatal) -> Fault {
        Fault::Fatal(fatal)
    }
}

fn trimmed(mut line: &[u8]) -> &[u8] {
    const BLANKS: &[u8] = b" \t\r\n";
    while let [first, rest @ ..] = line
        && BLANKS.contains(first)
    {
        line = rest;
    }
    while let [rest @ .., last] = line
        && BLANKS.contains(last)
    {
        line = rest;
    }
    line
}

fn words_of(line: &[u8]) -> Result<Vec<String>, Fault> {
    let (mut text, mut spans) = (Vec::new(), Vec::new());
    split_words(line, &mut text, &mut spans).map_err(|_| "Unbalanced quotes in configuration line".to_owned())?;
    let words = spans.iter().map(|span| match std::str::from_utf8(&text[span.start..span.end]) {
        Ok(word) => Ok(word.to_owned()),
        Err(_) => Err(Fault::Reason("argument must be valid UTF-8".to_owned())),
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::Command;

    /// Files by name; directories are accepted unless they are called `missing`.
    struct FilesInMemory(&'static [(&'static str, &'static str)]);

    impl Files for FilesInMemory {
        fn read(&mut self, pattern: &str) -> Result<Vec<Vec<u8>>, Unreadable> {
            let found: Vec<_> = self.0.iter().filter(|(name, _)| *name == pattern).collect();
            if found.is_empty() {
                return Err(Unreadable { path: pattern.to_owned(), reason: "No such file or directory".to_owned() });
            }
            Ok(found.iter().map(|(_, text)| text.as_bytes().to_vec()).collect())
        }

        fn enter(&mut self, directory: &str) -> Result<String, String> {
            if directory == "missing" {
                Err("No such file or directory".to_owned())
            } else {
                Ok(format!("/{directory}"))
            }
        }
    }

    const COMMANDS: &[&[Command]] =
        &[&[Command { name: "GET", ..Command::ROW }, Command { name: "SET", ..Command::ROW }]];

    fn loaded(text: &str) -> Result<Loaded, Fatal> {
        let mut files = FilesInMemory(&[("a", "port 1\ninclude b\n"), ("b", "timeout 2"), ("loop", "include loop")]);
        load(Settings::default(), text.as_bytes(), &mut files, &Table::of(COMMANDS))
    }

    fn refused(text: &str) -> (usize, String, String) {
        match loaded(text) {
            Err(Fatal::Line { number, line, reason }) => (number, line, reason),
            other => panic!("{text:?} gave {other:?}"),
        }
    }

    #[test]
    fn comments_blanks_and_quotes_are_read_as_redis_reads_them() {
        let text = "# a comment\n\n  PORT 7000\r\n\trequirepass \"a b\"\n#port 1\nbind 127.0.0.1 '::1'\nsave \"\"";
        let settings = loaded(text).expect("every line is right").settings;
        assert_eq!((settings.port, settings.password.as_str()), (7000, "a b"));
        assert_eq!(settings.bind, ["127.0.0.1", "::1"]);
    }

    #[test]
    fn the_lines_of_an_included_file_take_the_place_of_the_include() {
        let settings = loaded("port 9\ninclude a\ntimeout 3").expect("every line is right").settings;
        assert_eq!((settings.port, settings.timeout_s), (1, 3));
    }

    #[test]
    fn a_missing_file_is_reported_with_its_path() {
        let fatal = loaded("include nowhere").expect_err("the file is missing");
        assert_eq!(fatal.to_string(), "Fatal error, can't open config file 'nowhere': No such file or directory");
    }

    #[test]
    fn a_file_that_includes_itself_is_not_read_for_ever() {
        assert_eq!(refused("include loop").2, "files include one another more than 16 deep");
    }

    #[test]
    fn a_wrong_line_is_reported_with_its_number_and_text() {
        let fatal = loaded("port 0\n\n  port x y \n").expect_err("there is a word too many");
        let text = "\n*** FATAL CONFIG FILE ERROR (Redis 8.0.6) ***\n\
                    Reading the configuration file, at line 3\n>>> 'port x y'\nwrong number of arguments";
        assert_eq!(fatal.to_string(), text);
    }

    #[test]
    fn errors_in_a_file_have_the_texts_of_redis() {
        let table = [
            ("port \"0", "Unbalanced quotes in configuration line"),
            ("port", "wrong number of arguments"),
            ("port x", "argument couldn't be parsed into an integer"),
            ("port 70000", "argument must be between 0 and 65535 inclusive"),
            ("appendonly maybe", "argument must be 'yes' or 'no'"),
            ("save 900", "Invalid save parameters"),
            ("dir missing", "No such file or directory"),
            ("nosuch 1", "Bad directive or wrong number of arguments"),
            ("include", "Bad directive or wrong number of arguments"),
            ("replicaof 127.0.0.1 6379", "this server supports only ''"),
            ("rename-command GET SET", "Target command name already exists"),
            ("rename-command FETCH GET", "No such command in rename-command"),
            ("rename-command GET", "Bad directive or wrong number of arguments"),
            ("loadmodule x", "'loadmodule' is not supported"),
            ("user alice on foo", "Error in user declaration 'alice': Syntax error"),
            ("user alice on nopass +@all (foo", "Error in user declaration 'nopass': Wrong format"),
        ];
        for (line, reason) in table {
            assert_eq!(refused(line), (1, line.to_owned(), reason.to_owned()));
        }
    }

    #[test]
    fn a_user_is_declared_once() {
        let users = loaded("user ann on +nosuch\nUSER bob").expect("rules about unknown commands wait").settings.users;
        assert_eq!(
            users,
            [("ann".to_owned(), vec!["on".to_owned(), "+nosuch".to_owned()]), ("bob".to_owned(), vec![])]
        );
        let reason =
            "Error in user declaration 'ann': Duplicate user found. A user can only be defined once in config files";
        assert_eq!(refused("user ann on\nuser ann off"), (2, "user ann off".to_owned(), reason.to_owned()));
    }

    #[test]
    fn a_value_without_effect_is_reported_once() {
        let warnings = loaded("save 900 1\nsave 300 10\nalways-show-logo yes\nio-threads-do-reads yes\nhz 10")
            .expect("nothing is refused")
            .warnings;
        let text = ["the value given for 'always-show-logo' has no effect, this server goes by 'no'"];
        assert_eq!(warnings, text);
    }

    #[test]
    fn the_directory_is_stored_with_its_full_path() {
        assert_eq!(loaded("dir data").expect("it is there").settings.directory, "/data");
    }

    proptest! {
        #[test]
        fn no_configuration_file_makes_the_reader_panic(text in "[ -~\\n\\t\"'\\\\é]{0,80}") {
            drop(loaded(&text));
        }

        #[test]
        fn no_value_makes_a_parameter_panic(index in 0..200_usize, words in "[0-9a-z%. \"-]{0,30}") {
            if let Some(parameter) = crate::config::parameters().nth(index) {
                drop(loaded(&format!("{} {words}", parameter.name)));
            }
        }
    }
}
