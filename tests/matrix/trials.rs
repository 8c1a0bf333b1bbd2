//! The lists of requests to send, generated from a command's samples.

use dunlin::engine::Entry;

use crate::fixture::Trial;
use crate::left_out;
use crate::sampler::{Role, Sample, pairs_of_options, samples};
use crate::server::{TYPES, key, natural_type};
use crate::words::quote;

/// Numbers at the edges of what fits, what looks like a number, and the bounds of ranges.
const EDGES: &[&str] = &[
    "-9223372036854775808",
    "-9223372036854775807",
    "-9223372036854770000",
    "-4294967297",
    "-2147483649",
    "-2147483648",
    "-1",
    "-0",
    "0",
    "1",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "8070450532247928833",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1.5",
    "1e308",
    "inf",
    "-inf",
    "nan",
    "0x10",
    "+1",
    "01",
    " 1",
    "1 ",
    "",
    "a",
    "-",
    "+",
    "(1",
    "[a",
];

/// The number of nines in the longest number.
const NINES: usize = 1 << 20;

/// Every key of every sample with every type; of several keys the first two.
pub(crate) fn types(entry: &Entry) -> Vec<Trial> {
    samples(entry).iter().flat_map(|sample| with_types(entry, sample)).collect()
}

/// Each two options of every command, with keys of every type.
pub(crate) fn options(entry: &Entry) -> Vec<Trial> {
    pairs_of_options(entry).iter().flat_map(|sample| with_types(entry, sample)).collect()
}

fn with_types(entry: &Entry, sample: &Sample) -> Vec<Trial> {
    let places = places(sample, &[Role::Key]);
    let tried = &places[..places.len().min(2)];
    let named = with_keys(sample, natural_type(entry.command.family));
    let template = template_of(&named, tried);
    let trial = |(value, keys): (String, Vec<String>)| {
        let mut words = named.clone();
        for (&place, key) in tried.iter().zip(keys) {
            words[place] = key.into_bytes();
        }
        Trial { template: template.clone(), value, keys: picked(&words, &places), words }
    };
    combinations(tried.len()).into_iter().map(trial).collect()
}

/// Names for the types of some keys, and the keys that hold them. Of two keys both may be the same one.
fn combinations(keys: usize) -> Vec<(String, Vec<String>)> {
    match keys {
        0 => Vec::new(),
        1 => TYPES.iter().map(|holding| ((*holding).to_owned(), vec![key(holding, 0)])).collect(),
        _ => {
            let both = |first: &str, second: &str| (format!("{first}+{second}"), vec![key(first, 0), key(second, 1)]);
            let twice = |holding: &&str| (format!("{holding}-twice"), vec![key(holding, 0), key(holding, 0)]);
            let differ = TYPES.iter().flat_map(|first| TYPES.iter().map(|second| both(first, second)));
            differ.chain(TYPES.iter().map(twice)).collect()
        }
    }
}

fn picked(words: &[Vec<u8>], places: &[usize]) -> Vec<Vec<u8>> {
    places.iter().map(|&place| words[place].clone()).collect()
}

/// Every number of every sample with every edge: with keys of the right type, of a wrong one, and that are not there.
pub(crate) fn boundaries(entry: &Entry) -> Vec<Trial> {
    let mut trials = Vec::new();
    for sample in samples(entry) {
        let has_keys = !places(&sample, &[Role::Key]).is_empty();
        let natural = natural_type(entry.command.family);
        let wrong = if natural == "zset" { "text" } else { "zset" };
        let holdings = [natural, wrong, "none"];
        for holding in &holdings[..if has_keys { 3 } else { 1 }] {
            let named = with_keys(&sample, holding);
            for place in places(&sample, &[Role::Number, Role::Bound, Role::KeyCount]) {
                let template = template_of(&named, &[place]);
                let edges = EDGES.iter().map(|edge| (quoted(edge.as_bytes()), edge.as_bytes().to_vec()));
                for (value, word) in edges.chain([("9{1048576}".to_owned(), vec![b'9'; NINES])]) {
                    let is_left_out = *holding == natural && left_out::value(&entry.name, &value);
                    if !is_left_out && !left_out::ends_the_real_server(&entry.name, &value) {
                        let mut words = named.clone();
                        words[place] = word;
                        trials.push(Trial { template: template.clone(), value, words, keys: Vec::new() });
                    }
                }
            }
        }
    }
    trials
}

/// Every sample truncated at every word after the name, and with one more word, each request once.
pub(crate) fn lengths(entry: &Entry) -> Vec<Trial> {
    let name = entry.name.split('|').count();
    let mut trials: Vec<Trial> = Vec::new();
    for sample in samples(entry) {
        let named = with_keys(&sample, natural_type(entry.command.family));
        let template = template_of(&named, &[]);
        let longer = [named.clone(), vec![b"more".to_vec()]].concat();
        let shorter = (name..=named.len()).map(|length| (length.to_string(), named[..length].to_vec()));
        for (value, words) in shorter.chain([("more".to_owned(), longer)]) {
            if trials.iter().all(|trial| trial.words != words) {
                trials.push(Trial { template: template.clone(), value, words, keys: Vec::new() });
            }
        }
    }
    trials
}

/// COMMAND GETKEYSANDFLAGS of every sample of commands with keys: cut short at every word, and with every edge as the
/// number of keys.
pub(crate) fn keys(entry: &Entry) -> Vec<Trial> {
    let mut trials = Vec::new();
    for sample in samples(entry).iter().filter(|_| !entry.command.keys.is_empty()) {
        let named = with_keys(sample, natural_type(entry.command.family));
        let mut push = |hole: &[usize], value: String, words: &[Vec<u8>]| {
            let template = format!("COMMAND GETKEYSANDFLAGS {}", template_of(&named, hole));
            let prefix = [b"COMMAND".to_vec(), b"GETKEYSANDFLAGS".to_vec()];
            trials.push(Trial { template, value, words: [&prefix, words].concat(), keys: Vec::new() });
        };
        for length in 1..=named.len() {
            push(&[], length.to_string(), &named[..length]);
        }
        for place in places(sample, &[Role::KeyCount]) {
            for edge in EDGES.iter().filter(|edge| !left_out::count_of_keys(edge)) {
                let mut words = named.clone();
                words[place] = edge.as_bytes().to_vec();
                push(&[place], quoted(edge.as_bytes()), &words);
            }
        }
    }
    trials
}

fn places(sample: &Sample, roles: &[Role]) -> Vec<usize> {
    (0..sample.len()).filter(|&place| roles.contains(&sample[place].role)).collect()
}

/// The words of a sample, all of whose keys hold that type.
fn with_keys(sample: &Sample, holding: &str) -> Vec<Vec<u8>> {
    let mut nth = 0;
    let mut words = Vec::new();
    for word in sample {
        if word.role == Role::Key {
            words.push(key(holding, nth).into_bytes());
            nth += 1;
        } else {
            words.push(word.bytes.clone());
        }
    }
    words
}

fn template_of(words: &[Vec<u8>], holes: &[usize]) -> String {
    let word = |(place, word): (usize, &Vec<u8>)| if holes.contains(&place) { "@".to_owned() } else { quoted(word) };
    words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

/// A word as a reader would write it: in quotes only where it must be.
fn quoted(word: &[u8]) -> String {
    let is_plain = !word.is_empty() && word.iter().all(|byte| byte.is_ascii_graphic() && !b"\"'@".contains(byte));
    if is_plain { String::from_utf8_lossy(word).into_owned() } else { quote(word) }
}
