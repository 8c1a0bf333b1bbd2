//! Values with special rules: lists of words, and words that are more than a number or a name.
//!
//! Each function parses its input and returns it checked, for the row's setter, or returns Redis's error. Source: the
//! replies of Redis 8.0.6 to the values in the tests below.

use super::parameter::{WRONG_NUMBER, parse_memory};
#[cfg(feature = "program")]
use crate::engine::EndWith;
use crate::engine::{ClientsLimit, Notifications, OutputLimit, OutputLimits, SavePoint, Settings};
use crate::value::number;

const MAX_ADDRESSES: usize = 16;

/// `bind`: addresses to listen on.
pub(super) fn addresses(words: &[&str]) -> Result<String, String> {
    if words.len() > MAX_ADDRESSES {
        return Err("Too many bind addresses specified.".to_owned());
    }
    Ok(words.join(" "))
}

/// `page-host`: any names.
#[cfg(feature = "page")]
pub(super) fn any(words: &[&str]) -> Result<String, String> {
    Ok(words.join(" "))
}

/// `locale-collate`: texts are compared byte by byte, which is the locale of C; there is no other.
pub(super) fn locale(word: &str) -> Result<String, String> {
    if matches!(word, "" | "C" | "POSIX") { Ok(word.to_owned()) } else { Err("Invalid locale name".to_owned()) }
}

/// `proc-title-template`: a text that is not blank, with these variables in braces.
pub(super) fn title_template(word: &str) -> Result<String, String> {
    const VARIABLES: [&str; 7] =
        ["title", "listen-addr", "server-mode", "port", "tls-port", "unixsocket", "config-file"];
    let mut rest = word;
    let mut is_known = !word.trim().is_empty();
    while let Some((_, after)) = rest.split_once('{') {
        // Two braces mean one.
        rest = if let Some(after) = after.strip_prefix('{') {
            after
        } else {
            let variable = after.split_once('}').filter(|(name, _)| VARIABLES.contains(name));
            is_known &= variable.is_some();
            variable.map_or("", |(_, after)| after)
        };
    }
    let reason = "template format is invalid or contains unknown variables";
    if is_known { Ok(word.to_owned()) } else { Err(reason.to_owned()) }
}

/// `save`: pairs of seconds and changes.
pub(super) fn save_points(words: &[&str]) -> Result<String, String> {
    let is_point = |pair: &[&str]| match pair {
        [seconds, changes] => c_number(seconds).is_some_and(|s| s >= 1) && c_number(changes).is_some_and(|c| c >= 0),
        _ => false,
    };
    if words.chunks(2).all(is_point) { Ok(words.join(" ")) } else { Err("Invalid save parameters".to_owned()) }
}

/// A number as C's `strtoll` takes it: with any sign and leading zeros, and 0 for an empty word.
fn c_number(word: &str) -> Option<i64> {
    if word.is_empty() { Some(0) } else { word.parse().ok() }
}

/// Assigns checked save points to the settings.
pub(super) fn assign_save_points(settings: &mut Settings, words: String) {
    let numbers: Vec<i64> = words.split(' ').map(|word| c_number(word).unwrap_or(0)).collect();
    let point = |pair: &[i64]| SavePoint { seconds: pair[0], changes: pair[1].cast_unsigned() };
    let files = settings.files_mut();
    files.save_points = numbers.chunks_exact(2).map(point).collect();
    files.loads_at_start |= !files.save_points.is_empty();
}

/// The save points as CONFIG GET shows them.
pub(super) fn shown_save_points(settings: &Settings) -> String {
    let points: Vec<String> =
        settings.files.save_points.iter().map(|point| format!("{} {}", point.seconds, point.changes)).collect();
    points.join(" ")
}

/// `client-output-buffer-limit`: for some classes of clients a hard limit, a soft one and its seconds; the other
/// classes are unchanged.
pub(super) fn output_limits(words: &[&str]) -> Result<String, String> {
    set_output_limits(&mut OutputLimits::default(), words).map(|()| words.join(" "))
}

/// Parses limits into `limits`; classes that are not named are unchanged.
fn set_output_limits(limits: &mut OutputLimits, words: &[&str]) -> Result<(), String> {
    if !words.len().is_multiple_of(4) {
        return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
    }
    for class in words.chunks(4) {
        let limit = match class[0].to_ascii_lowercase().as_str() {
            "normal" => &mut limits.normal,
            "slave" | "replica" => &mut limits.replica,
            "pubsub" => &mut limits.pubsub,
            _ => return Err("Invalid client class specified in buffer limit configuration.".to_owned()),
        };
        let seconds = if class[3].is_empty() { Some(0) } else { class[3].parse::<i32>().ok() };
        *limit = match (parse_memory(class[1]), parse_memory(class[2]), seconds.map(u64::try_from)) {
            (Some(hard_bytes), Some(soft_bytes), Some(Ok(soft_s))) => OutputLimit { hard_bytes, soft_bytes, soft_s },
            _ => {
                let complaint = "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
                return Err(complaint.to_owned());
            }
        };
    }
    Ok(())
}

/// Assigns checked limits to the settings.
pub(super) fn assign_output_limits(settings: &mut Settings, words: String) {
    let words: Vec<&str> = words.split(' ').filter(|_| !words.is_empty()).collect();
    // The words were checked before, so they are well formed.
    let _ = set_output_limits(&mut settings.output_limits, &words);
}

/// The limits as CONFIG GET shows them.
pub(super) fn shown_output_limits(settings: &Settings) -> String {
    let limits = &settings.output_limits;
    let classes = [("normal", limits.normal), ("slave", limits.replica), ("pubsub", limits.pubsub)];
    let shown =
        classes.map(|(name, limit)| format!("{name} {} {} {}", limit.hard_bytes, limit.soft_bytes, limit.soft_s));
    shown.join(" ")
}

/// `latency-tracking-info-percentiles`: numbers from 0 to 100.
pub(super) fn percentiles(words: &[&str]) -> Result<String, String> {
    let shown = words.iter().map(|word| match number::parse_f64(word.as_bytes()) {
        None => Err("Invalid latency-tracking-info-percentiles parameters".to_owned()),
        Some(number) if (0.0..=100.0).contains(&number) => Ok(number.to_string()),
        Some(_) => Err("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]".to_owned()),
    });
    Ok(shown.collect::<Result<Vec<_>, _>>()?.join(" "))
}

/// Assigns checked percentiles to the settings.
pub(super) fn assign_percentiles(settings: &mut Settings, words: String) {
    settings.latency_percentiles = words.split(' ').filter_map(|word| number::parse_f64(word.as_bytes())).collect();
}

/// The percentiles as CONFIG GET shows them.
pub(super) fn shown_percentiles(settings: &Settings) -> String {
    let shown: Vec<String> = settings.latency_percentiles.iter().map(f64::to_string).collect();
    shown.join(" ")
}

/// `oom-score-adj-values`: three numbers for the kernel.
pub(super) fn oom_scores(words: &[&str]) -> Result<String, String> {
    if words.len() != 3 {
        return Err(WRONG_NUMBER.to_owned());
    }
    if words.iter().all(|word| oom_score(word).is_some()) {
        Ok(words.join(" "))
    } else {
        Err("Invalid oom-score-adj-values, elements must be between -2000 and 2000.".to_owned())
    }
}

fn oom_score(word: &str) -> Option<i16> {
    word.parse().ok().filter(|score| (-2000..=2000).contains(score))
}

/// Assigns checked scores to the settings.
pub(super) fn assign_oom_scores(settings: &mut Settings, words: String) {
    for (place, score) in settings.process_mut().oom_scores.iter_mut().zip(words.split(' ').filter_map(oom_score)) {
        *place = score;
    }
}

/// The scores as CONFIG GET shows them.
pub(super) fn shown_oom_scores(settings: &Settings) -> String {
    settings.process.oom_scores.map(|score| score.to_string()).join(" ")
}

/// `shutdown-on-sigint`, `shutdown-on-sigterm`: the options as of SHUTDOWN.
pub(super) fn shutdown_options(words: &[&str]) -> Result<String, String> {
    const OPTIONS: [&str; 4] = ["save", "nosave", "now", "force"];
    let is_known = |word: &&str| OPTIONS.iter().chain(&["default"]).any(|option| word.eq_ignore_ascii_case(option));
    if words.is_empty() || !words.iter().all(is_known) {
        return Err("argument(s) must be one of the following: default, save, nosave, now, force".to_owned());
    }
    let is_given = |option: &&str| words.iter().any(|word| word.eq_ignore_ascii_case(option));
    let given: Vec<&str> = OPTIONS.into_iter().filter(is_given).collect();
    match given[..] {
        [] => Ok("default".to_owned()),
        ["save", "nosave", ..] => Err("shutdown options SAVE and NOSAVE can't be used simultaneously".to_owned()),
        _ => Ok(given.join(" ")),
    }
}

/// `end-with`: the standard input, processes, or nothing.
#[cfg(feature = "program")]
pub(super) fn end_with(word: &str) -> Result<String, String> {
    let known = EndWith::named(word).ok_or("argument must be 'stdin' or the id of a process")?;
    Ok(known.name())
}

/// `replicaof`: a host and a port, or `no one`.
pub(super) fn primary(words: &[&str]) -> Result<String, String> {
    match words {
        [no, one] if no.eq_ignore_ascii_case("no") && one.eq_ignore_ascii_case("one") => Ok(String::new()),
        [_, port] => match port.parse::<u16>() {
            Ok(_) => Ok(words.join(" ")),
            Err(_) => Err("Invalid master port".to_owned()),
        },
        _ => Err(WRONG_NUMBER.to_owned()),
    }
}

/// `notify-keyspace-events`: letters for classes of events, where `A` stands for most.
pub(super) fn event_classes(word: &str) -> Result<String, String> {
    let complaint = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
    Notifications::named(word).map(|_| word.to_owned()).ok_or_else(|| complaint.to_owned())
}

/// The share of clients as CONFIG GET shows it.
pub(super) fn shown_clients_limit(settings: &Settings) -> String {
    match settings.max_client_bytes {
        ClientsLimit::Bytes(bytes) => bytes.to_string(),
        ClientsLimit::Percent(percent) => format!("{percent}%"),
    }
}

/// Assigns a checked share to the settings.
pub(super) fn assign_clients_limit(settings: &mut Settings, word: String) {
    let percent = word.strip_suffix('%').and_then(|percent| percent.parse().ok());
    let bytes = || word.parse().unwrap_or(0);
    settings.max_client_bytes = percent.map_or_else(|| ClientsLimit::Bytes(bytes()), ClientsLimit::Percent);
}

/// `appendfilename`.
pub(super) fn append_file_name(word: &str) -> Result<String, String> {
    file_name("appendfilename", word)
}

/// `appenddirname`.
pub(super) fn append_directory_name(word: &str) -> Result<String, String> {
    file_name("appenddirname", word)
}

/// `dbfilename`: it may be empty.
pub(super) fn database_file_name(word: &str) -> Result<String, String> {
    if word.is_empty() { Ok(String::new()) } else { file_name("dbfilename", word) }
}

fn file_name(parameter: &str, word: &str) -> Result<String, String> {
    let kind = if parameter == "appenddirname" { "dirname" } else { "filename" };
    match word {
        "" => Err(format!("{parameter} can't be empty")),
        _ if word.contains('/') => Err(format!("{parameter} can't be a path, just a {kind}")),
        _ => Ok(word.to_owned()),
    }
}

/// The longest name of a host, in bytes.
const LONGEST_HOSTNAME: usize = 255;

/// The name of a host, or nothing.
pub(super) fn hostname(word: &str) -> Result<String, String> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    if word.len() > LONGEST_HOSTNAME {
        return Err("Hostnames must be less than 256 characters".to_owned());
    }
    if word.bytes().all(is_fit) {
        Ok(word.to_owned())
    } else {
        Err("Hostnames may only contain alphanumeric characters, hyphens or dots".to_owned())
    }
}

/// The name of a node for people, or nothing.
pub(super) fn node_name(word: &str) -> Result<String, String> {
    if word.bytes().any(|byte| b"!#$%&()*+:;<>?@[]{|}^~\0".contains(&byte)) {
        return Err("Announced human node name contained invalid character".to_owned());
    }
    Ok(word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Reader = fn(&[&str]) -> Result<String, String>;

    fn read(reader: Reader, text: &str) -> Result<String, String> {
        let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
        reader(&words)
    }

    #[test]
    fn lists_are_shown_as_redis_shows_them() {
        let table: [(Reader, &str, &str); 8] = [
            (save_points, "900 1 300 10", "900 1 300 10"),
            (save_points, "", ""),
            (percentiles, "1.0 2 99.999", "1 2 99.999"),
            (shutdown_options, "FORCE now", "now force"),
            (shutdown_options, "default", "default"),
            (primary, "no ONE", ""),
            (oom_scores, "0 200 800", "0 200 800"),
            (addresses, "* -::*", "* -::*"),
        ];
        for (reader, text, shown) in table {
            assert_eq!(read(reader, text), Ok(shown.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_title_is_made_of_variables_that_exist() {
        for template in
            ["{title} x", "title}", "{{title}}", "{{", "{port}{tls-port}{unixsocket}{config-file}{server-mode}"]
        {
            assert_eq!(title_template(template), Ok(template.to_owned()));
        }
        for template in ["", "  ", "{foo}", "{title", "{ title}", "{TITLE}", "{port}{"] {
            let reason = "template format is invalid or contains unknown variables";
            assert_eq!(title_template(template), Err(reason.to_owned()), "{template}");
        }
    }

    #[test]
    fn the_only_locale_has_three_names() {
        assert_eq!(["", "C", "POSIX"].map(|name| locale(name).is_ok()), [true; 3]);
        assert_eq!(locale("de_DE"), Err("Invalid locale name".to_owned()));
    }

    #[test]
    fn wrong_lists_are_refused_with_the_texts_of_redis() {
        let table: [(Reader, &str, &str); 13] = [
            (save_points, "900", "Invalid save parameters"),
            (save_points, "0 1", "Invalid save parameters"),
            (save_points, "1 -1", "Invalid save parameters"),
            (output_limits, "normal 1 2", "Wrong number of arguments in buffer limit configuration."),
            (output_limits, "master 1 2 3", "Invalid client class specified in buffer limit configuration."),
            (output_limits, "0 1 2 3", "Invalid client class specified in buffer limit configuration."),
            (
                output_limits,
                "normal 1 2 -1",
                "Error in hard, soft or soft_seconds setting in buffer limit configuration.",
            ),
            (percentiles, "101", "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"),
            (percentiles, "a", "Invalid latency-tracking-info-percentiles parameters"),
            (shutdown_options, "save nosave", "shutdown options SAVE and NOSAVE can't be used simultaneously"),
            (primary, "host 70000", "Invalid master port"),
            (oom_scores, "1 2 3000", "Invalid oom-score-adj-values, elements must be between -2000 and 2000."),
            (addresses, "a b c d e f g h i j k l m n o p q", "Too many bind addresses specified."),
        ];
        for (reader, text, complaint) in table {
            assert_eq!(read(reader, text), Err(complaint.to_owned()), "{text}");
        }
    }

    #[test]
    fn output_limits_of_classes_that_are_not_named_stay() {
        let mut settings = Settings::default();
        for (words, shown) in [
            ("", "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"),
            ("pubsub 1kb 2 3 Replica 4 5 6", "normal 0 0 0 slave 4 5 6 pubsub 1024 2 3"),
            ("normal 7 8 9 normal 1 1 ", "normal 1 1 0 slave 4 5 6 pubsub 1024 2 3"),
        ] {
            let given: Vec<&str> = words.split(' ').filter(|_| !words.is_empty()).collect();
            assign_output_limits(&mut settings, output_limits(&given).expect("they are well formed"));
            assert_eq!(shown_output_limits(&settings), shown, "{words}");
        }
    }

    #[test]
    fn a_file_name_is_no_path() {
        assert_eq!(append_file_name("a/b"), Err("appendfilename can't be a path, just a filename".to_owned()));
        assert_eq!(append_file_name(""), Err("appendfilename can't be empty".to_owned()));
        assert_eq!(database_file_name(""), Ok(String::new()));
    }
}
