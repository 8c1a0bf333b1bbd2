//! A configuration parameter: a row with its name, how its value is parsed, limited and shown, and where it is stored.
//!
//! A row stores its value in a field of [`Settings`], stores it without effect, or always has the one value in effect
//! here. All kinds parse their input by the same rules, so a malformed value always gets Redis's error.
//!
//! Invariant: [`Parameter::assign`] can parse the text of [`Parameter::shown`], which then changes nothing. The tests
//! of `rows` check this for every row.

use crate::engine::Settings;
use crate::resp::write_escaped;
use crate::value::number;

/// The place where a value of type `T` is stored.
#[derive(Debug)]
pub(super) enum Backing<T> {
    /// In a field of the settings.
    Field(fn(&Settings) -> T, fn(&mut Settings, T)),
    /// Nowhere: the value in effect is always this one, as CONFIG GET shows it.
    Fixed(&'static str),
    /// In the settings, by the row's name, without effect; this is the default, as CONFIG GET shows it.
    NoEffect(&'static str),
}

/// The type of a value: how it is parsed and shown.
#[derive(Debug)]
pub(super) enum Kind {
    /// `yes` or `no`.
    Switch(Backing<bool>),
    /// A decimal integer within bounds.
    Number(i64, i64, Backing<i64>),
    /// Bytes within bounds, with or without a unit such as `mb`.
    Memory(u64, u64, Backing<u64>),
    /// Bytes, with or without a unit, or a percentage of another limit.
    Share(Backing<String>),
    /// Permissions of a file, in octal digits.
    Mode(Backing<i64>),
    /// A value that is one of these names.
    Choice(&'static [&'static str], Backing<&'static str>),
    /// Any text.
    Text(Backing<String>),
    /// A word with special rules; the function parses it and returns it as it is shown.
    Word(fn(&str) -> Result<String, String>, Backing<String>),
    /// Any number of words with special rules; the function parses them and returns them as they are shown.
    Words(fn(&[&str]) -> Result<String, String>, Backing<String>),
}

/// The times when a parameter can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutability {
    /// At startup and by CONFIG SET.
    Anytime,
    /// Only at startup.
    AtStart,
    /// By CONFIG SET only if `enable-protected-configs` allows it.
    Protected,
}

/// The reaction to a configuration file with a value that is not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUnsupported {
    /// A warning: no reply depends on the value.
    Warn,
    /// The start fails: replies would be wrong.
    Refuse,
}

/// The result of assigning a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assigned {
    /// The value is in effect.
    InForce,
    /// The value is well formed, but another one stays in effect; both as CONFIG GET shows them.
    Differs {
        /// The value that was given.
        given: String,
        /// The value in effect.
        actual: &'static str,
    },
}

/// A configuration parameter, declared once.
#[derive(Debug)]
pub struct Parameter {
    /// The parameter's name.
    pub name: &'static str,
    /// An alias, from older versions of Redis.
    pub alias: Option<&'static str>,
    /// The times when the parameter can be set.
    pub mutability: Mutability,
    /// The reaction to a configuration file with a value that is not supported.
    pub on_unsupported: OnUnsupported,
    /// CONFIG GET shows the parameter only if it is named.
    pub is_hidden: bool,
    /// The error of CONFIG SET for a value that is not supported, where Redis has one for this case.
    refusal: Option<&'static str>,
    kind: Kind,
}

/// Default fields, which a row extends.
impl Parameter {
    const fn of(name: &'static str, kind: Kind) -> Parameter {
        Parameter {
            name,
            alias: None,
            mutability: Mutability::Anytime,
            on_unsupported: OnUnsupported::Warn,
            is_hidden: false,
            refusal: None,
            kind,
        }
    }

    pub(super) const fn switch(name: &'static str, backing: Backing<bool>) -> Parameter {
        Parameter::of(name, Kind::Switch(backing))
    }

    pub(super) const fn number(name: &'static str, least: i64, most: i64, backing: Backing<i64>) -> Parameter {
        Parameter::of(name, Kind::Number(least, most, backing))
    }

    pub(super) const fn memory(name: &'static str, least: u64, most: u64, backing: Backing<u64>) -> Parameter {
        Parameter::of(name, Kind::Memory(least, most, backing))
    }

    pub(super) const fn mode(name: &'static str, backing: Backing<i64>) -> Parameter {
        Parameter::of(name, Kind::Mode(backing))
    }

    pub(super) const fn choice(
        name: &'static str,
        names: &'static [&'static str],
        backing: Backing<&'static str>,
    ) -> Parameter {
        Parameter::of(name, Kind::Choice(names, backing))
    }

    pub(super) const fn text(name: &'static str, backing: Backing<String>) -> Parameter {
        Parameter::of(name, Kind::Text(backing))
    }

    pub(super) const fn word(
        name: &'static str,
        read: fn(&str) -> Result<String, String>,
        backing: Backing<String>,
    ) -> Parameter {
        Parameter::of(name, Kind::Word(read, backing))
    }

    pub(super) const fn share(name: &'static str, backing: Backing<String>) -> Parameter {
        Parameter::of(name, Kind::Share(backing))
    }

    pub(super) const fn words(
        name: &'static str,
        read: fn(&[&str]) -> Result<String, String>,
        backing: Backing<String>,
    ) -> Parameter {
        Parameter::of(name, Kind::Words(read, backing))
    }

    pub(super) const fn alias(self, alias: &'static str) -> Parameter {
        Parameter { alias: Some(alias), ..self }
    }

    pub(super) const fn at_start(self) -> Parameter {
        Parameter { mutability: Mutability::AtStart, ..self }
    }

    pub(super) const fn protected(self) -> Parameter {
        Parameter { mutability: Mutability::Protected, ..self }
    }

    pub(super) const fn hidden(self) -> Parameter {
        Parameter { is_hidden: true, ..self }
    }

    pub(super) const fn refusing(self, refusal: &'static str) -> Parameter {
        Parameter { refusal: Some(refusal), ..self }
    }

    pub(super) const fn or_refuse(self) -> Parameter {
        Parameter { on_unsupported: OnUnsupported::Refuse, ..self }
    }
}

/// Methods of rows.
impl Parameter {
    /// The names of the parameter: its name, and its alias if it has one.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        [Some(self.name), self.alias].into_iter().flatten()
    }

    /// The values that it can have; none if they are no fixed names.
    #[cfg(test)]
    pub(super) fn choices(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Switch(_) => &["yes", "no"],
            Kind::Choice(names, _) => names,
            _ => &[],
        }
    }

    /// The parameter's value, as CONFIG GET shows it.
    pub fn shown(&self, settings: &Settings) -> String {
        let name = self.name;
        match &self.kind {
            Kind::Switch(backing) => backing.shown(name, settings, show_switch),
            Kind::Number(_, _, backing) => backing.shown(name, settings, i64::to_string),
            Kind::Memory(_, _, backing) => backing.shown(name, settings, u64::to_string),
            Kind::Mode(backing) => backing.shown(name, settings, show_mode),
            Kind::Choice(_, backing) => backing.shown(name, settings, |name| (*name).to_owned()),
            Kind::Share(backing) | Kind::Text(backing) | Kind::Word(_, backing) | Kind::Words(_, backing) => {
                backing.shown(name, settings, String::clone)
            }
        }
    }

    /// The error of CONFIG SET for a well-formed value that is not supported, as `actual` stays in effect.
    pub fn refusal(&self, actual: &str) -> String {
        self.refusal.map_or_else(|| unsupported(actual), str::to_owned)
    }

    /// True if only one value is supported, which a configuration file need not contain.
    pub fn is_fixed(&self) -> bool {
        match &self.kind {
            Kind::Switch(backing) => backing.is_fixed(),
            Kind::Number(_, _, backing) | Kind::Mode(backing) => backing.is_fixed(),
            Kind::Memory(_, _, backing) => backing.is_fixed(),
            Kind::Choice(_, backing) => backing.is_fixed(),
            Kind::Share(backing) | Kind::Text(backing) | Kind::Word(_, backing) | Kind::Words(_, backing) => {
                backing.is_fixed()
            }
        }
    }

    /// A value from [`Parameter::shown`], as a configuration file has it after the name.
    pub fn written(&self, shown: &str) -> String {
        match self.kind {
            Kind::Memory(..) | Kind::Share(_) => shown.parse().map_or_else(|_| shown.to_owned(), in_largest_unit),
            Kind::Text(_) | Kind::Word(..) => in_quotes(shown),
            Kind::Words(..) if shown.is_empty() => in_quotes(shown),
            Kind::Words(..) => shown.split(' ').map(in_quotes_if_needed).collect::<Vec<_>>().join(" "),
            Kind::Switch(_) | Kind::Number(..) | Kind::Mode(_) | Kind::Choice(..) => shown.to_owned(),
        }
    }

    /// Parses a value that came as one text (CONFIG SET) and assigns it.
    ///
    /// # Errors
    /// Redis's error about the value. Nothing changed.
    pub fn assign_text(&self, settings: &mut Settings, text: &str) -> Result<Assigned, String> {
        match self.kind {
            Kind::Words(..) if text.is_empty() => self.assign(settings, &[]),
            Kind::Words(..) => self.assign(settings, &text.split(' ').collect::<Vec<_>>()),
            _ => self.assign(settings, &[text]),
        }
    }

    /// Parses the bytes of a value (CONFIG SET) and assigns it. A text ends at a NUL byte, as in Redis, with the same
    /// exceptions.
    ///
    /// # Errors
    /// Redis's error about the value, or that it is not UTF-8, which settings are here. Nothing changed.
    pub fn assign_bytes(&self, settings: &mut Settings, value: &[u8]) -> Result<Assigned, String> {
        const WITH_NUL: [&str; 3] = ["requirepass", "masterauth", "cluster-announce-human-nodename"];
        let is_whole = matches!(self.kind, Kind::Number(..)) || WITH_NUL.contains(&self.name);
        let end = value.iter().position(|&byte| byte == 0).filter(|_| !is_whole).unwrap_or(value.len());
        match std::str::from_utf8(&value[..end]) {
            Ok(text) => self.assign_text(settings, text),
            Err(_) => {
                // Most parameters take no such value for a reason of their own.
                self.assign_text(&mut settings.clone(), &String::from_utf8_lossy(&value[..end]))?;
                Err("argument must be valid UTF-8".to_owned())
            }
        }
    }

    /// Parses a value that came as words (a line of a file) and assigns it.
    ///
    /// # Errors
    /// Redis's error about the value. Nothing changed.
    pub fn assign_words(&self, settings: &mut Settings, words: &[&str]) -> Result<Assigned, String> {
        match words {
            [text] => self.assign_text(settings, text),
            _ => self.assign(settings, words),
        }
    }

    fn assign(&self, settings: &mut Settings, words: &[&str]) -> Result<Assigned, String> {
        let name = self.name;
        match &self.kind {
            Kind::Switch(backing) => Ok(backing.put(name, settings, read_switch(single(words)?)?, show_switch)),
            Kind::Number(least, most, backing) => {
                let number = read_number(single(words)?, *least, *most)?;
                Ok(backing.put(name, settings, number, i64::to_string))
            }
            Kind::Memory(least, most, backing) => {
                let bytes = read_memory(single(words)?, *least, *most)?;
                Ok(backing.put(name, settings, bytes, u64::to_string))
            }
            Kind::Share(backing) => Ok(backing.put(name, settings, read_share(single(words)?)?, String::clone)),
            Kind::Mode(backing) => Ok(backing.put(name, settings, read_mode(single(words)?)?, show_mode)),
            Kind::Choice(names, backing) => {
                Ok(backing.put(name, settings, read_choice(single(words)?, names)?, |name| (*name).to_owned()))
            }
            Kind::Text(backing) => Ok(backing.put(name, settings, single(words)?.to_owned(), String::clone)),
            Kind::Word(read, backing) => Ok(backing.put(name, settings, read(single(words)?)?, String::clone)),
            Kind::Words(read, backing) => Ok(backing.put(name, settings, read(words)?, String::clone)),
        }
    }
}

impl<T> Backing<T> {
    fn shown(&self, name: &str, settings: &Settings, show: fn(&T) -> String) -> String {
        match self {
            Backing::Field(get, _) => show(&get(settings)),
            Backing::Fixed(text) => (*text).to_owned(),
            Backing::NoEffect(default) => settings.idle.get(name).cloned().unwrap_or_else(|| (*default).to_owned()),
        }
    }

    fn put(&self, name: &'static str, settings: &mut Settings, value: T, show: fn(&T) -> String) -> Assigned {
        match *self {
            Backing::Field(_, set) => set(settings, value),
            Backing::NoEffect(_) => _ = settings.idle.insert(name, show(&value)),
            Backing::Fixed(actual) => {
                let given = show(&value);
                if given != actual {
                    return Assigned::Differs { given, actual };
                }
            }
        }
        Assigned::InForce
    }

    fn is_fixed(&self) -> bool {
        matches!(self, Backing::Fixed(_))
    }
}

/// Bytes in the largest unit that divides them.
pub(super) fn in_largest_unit(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb")];
    match UNITS.into_iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

fn in_quotes(text: &str) -> String {
    let mut quoted = b"\"".to_vec();
    write_escaped(text.as_bytes(), &mut quoted);
    quoted.push(b'"');
    String::from_utf8(quoted).expect("what is escaped is ASCII")
}

fn in_quotes_if_needed(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".:*-_/%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) { word.to_owned() } else { in_quotes(word) }
}

/// Redis's error for too few or too many words.
pub(super) const WRONG_NUMBER: &str = "wrong number of arguments";

fn single<'a>(words: &[&'a str]) -> Result<&'a str, String> {
    match words {
        [word] => Ok(word),
        _ => Err(WRONG_NUMBER.to_owned()),
    }
}

fn read_switch(word: &str) -> Result<bool, String> {
    match word {
        _ if word.eq_ignore_ascii_case("yes") => Ok(true),
        _ if word.eq_ignore_ascii_case("no") => Ok(false),
        _ => Err("argument must be 'yes' or 'no'".to_owned()),
    }
}

fn show_switch(value: &bool) -> String {
    if *value { "yes" } else { "no" }.to_owned()
}

fn read_number(word: &str, least: i64, most: i64) -> Result<i64, String> {
    let number = number::parse_i64(word.as_bytes()).ok_or("argument couldn't be parsed into an integer")?;
    if (least..=most).contains(&number) {
        Ok(number)
    } else {
        Err(format!("argument must be between {least} and {most} inclusive"))
    }
}

fn read_memory(word: &str, least: u64, most: u64) -> Result<u64, String> {
    let bytes = parse_memory(word).ok_or("argument must be a memory value")?;
    if (least..=most).contains(&bytes) {
        Ok(bytes)
    } else {
        Err(format!("argument must be between {least} and {most} inclusive"))
    }
}

fn read_share(word: &str) -> Result<String, String> {
    let complaint = "argument must be a memory or percent value";
    let Some(percent) = word.strip_suffix('%') else {
        return parse_memory(word).map(|bytes| bytes.to_string()).ok_or_else(|| complaint.to_owned());
    };
    match percent.parse::<u64>() {
        Ok(0) => Ok("0".to_owned()),
        Ok(percent) if percent <= 100 => Ok(format!("{percent}%")),
        Ok(_) => Err("percentage argument must be less or equal to 100".to_owned()),
        Err(_) => Err(complaint.to_owned()),
    }
}

/// Bytes, with or without a unit: `k` is a thousand and `kb` is 1024, and so on. Without digits the value is 0, and a
/// value that does not fit becomes the maximum, as in Redis.
pub fn parse_memory(word: &str) -> Option<u64> {
    // Redis parses up to the first NUL.
    let word = word.split('\0').next().unwrap_or_default();
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, unit) = word.split_at(digits);
    let unit: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    let count = if digits.is_empty() { 0 } else { digits.parse().unwrap_or(u64::MAX) };
    Some(count.saturating_mul(unit))
}

fn read_mode(word: &str) -> Result<i64, String> {
    let number = i64::from_str_radix(word, 8).ok().filter(|_| !word.starts_with('+'));
    let mode = number.ok_or("argument couldn't be parsed as an octal number")?;
    if (0..=0o777).contains(&mode) { Ok(mode) } else { Err("argument must be between 0 and 777 inclusive".to_owned()) }
}

fn show_mode(mode: &i64) -> String {
    format!("{mode:o}")
}

fn read_choice(word: &str, names: &'static [&'static str]) -> Result<&'static str, String> {
    let found = names.iter().find(|name| word.eq_ignore_ascii_case(name));
    found.copied().ok_or_else(|| format!("argument(s) must be one of the following: {}", names.join(", ")))
}

/// The warning about a well-formed value that has no effect.
pub(super) fn unsupported(actual: &str) -> String {
    format!("this server supports only '{actual}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_1000_and_of_1024_bytes_are_distinct() {
        let table = [("1", 1), ("1b", 1), ("2k", 2_000), ("2KB", 2_048), ("1m", 1_000_000), ("1mb", 1 << 20)];
        for (word, bytes) in
            table.into_iter().chain([("3g", 3_000_000_000), ("3Gb", 3 << 30), ("", 0), ("gb", 0), ("5\0x", 5)])
        {
            assert_eq!(parse_memory(word), Some(bytes), "{word}");
        }
        for word in ["-1", "1xb", "1.5gb", "1 mb", "x"] {
            assert_eq!(parse_memory(word), None, "{word}");
        }
        assert_eq!(parse_memory("99999999999999999999"), Some(u64::MAX));
    }

    #[test]
    fn a_number_outside_its_bounds_is_refused_with_the_bounds() {
        assert_eq!(read_number("70000", 0, 65_535), Err("argument must be between 0 and 65535 inclusive".to_owned()));
        for word in ["", "1 ", "+1", "1.0", "9223372036854775808"] {
            assert_eq!(
                read_number(word, 0, 9),
                Err("argument couldn't be parsed into an integer".to_owned()),
                "{word}"
            );
        }
    }

    #[test]
    fn a_share_is_bytes_or_a_percentage_up_to_100() {
        assert_eq!(read_share("5%"), Ok("5%".to_owned()));
        assert_eq!(read_share("1kb"), Ok("1024".to_owned()));
        assert_eq!(read_share("101%"), Err("percentage argument must be less or equal to 100".to_owned()));
        assert_eq!(read_share("%"), Err("argument must be a memory or percent value".to_owned()));
    }

    #[test]
    fn permissions_are_octal() {
        assert_eq!(read_mode("700"), Ok(0o700));
        assert_eq!(read_mode("888"), Err("argument couldn't be parsed as an octal number".to_owned()));
        assert_eq!(read_mode("1000"), Err("argument must be between 0 and 777 inclusive".to_owned()));
        assert_eq!(read_mode("-7"), Err("argument must be between 0 and 777 inclusive".to_owned()));
    }

    #[test]
    fn a_choice_is_read_in_any_case_and_shown_in_its_own() {
        assert_eq!(read_choice("YES", &["no", "yes"]), Ok("yes"));
        assert_eq!(read_choice("", &["a", "b"]), Err("argument(s) must be one of the following: a, b".to_owned()));
    }
}
