//! The three lists of requests that are tried, made from a command's samples.

use dunlin::engine::Entry;

use crate::left_out;
use crate::sampler::{Role, Sample, samples};
use crate::server::{TYPES, key, natural_type};
use crate::sheet::Trial;
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

/// How many nines the longest number has.
const NINES: usize = 1 << 20;

/// Every key of every sample with every type; of several keys the first two.
pub(crate) fn types(entry: &Entry) -> Vec<Trial> {
    let mut trials = Vec::new();
    for sample in samples(entry) {
        let keys: Vec<usize> = places(&sample, &[Role::Key]).into_iter().take(2).collect();
        if keys.is_empty() {
            continue;
        }
        let named = with_keys(&sample, natural_type(entry.command.family));
        let template = shown(&named, &keys);
        for combination in combinations(keys.len()) {
            let mut words = named.clone();
            for (nth, (&place, holding)) in keys.iter().zip(&combination).enumerate() {
                words[place] = key(holding, nth).into_bytes();
            }
            trials.push(Trial { template: template.clone(), value: combination.join("+"), words });
        }
    }
    trials
}

fn combinations(keys: usize) -> Vec<Vec<&'static str>> {
    if keys == 1 {
        return TYPES.iter().map(|&holding| vec![holding]).collect();
    }
    TYPES.iter().flat_map(|&first| TYPES.iter().map(move |&second| vec![first, second])).collect()
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
                let template = shown(&named, &[place]);
                let edges = EDGES.iter().map(|edge| (quoted(edge.as_bytes()), edge.as_bytes().to_vec()));
                for (value, word) in edges.chain([("9{1048576}".to_owned(), vec![b'9'; NINES])]) {
                    if *holding != natural || !left_out::value(&entry.name, &value) {
                        let mut words = named.clone();
                        words[place] = word;
                        trials.push(Trial { template: template.clone(), value, words });
                    }
                }
            }
        }
    }
    trials
}

/// Every sample cut short at every word behind the name, each request once.
pub(crate) fn truncated(entry: &Entry) -> Vec<Trial> {
    let name = entry.name.split('|').count();
    let mut trials: Vec<Trial> = Vec::new();
    for sample in samples(entry) {
        let named = with_keys(&sample, natural_type(entry.command.family));
        let template = shown(&named, &[]);
        for length in name..=named.len() {
            let words = named[..length].to_vec();
            if trials.iter().all(|trial| trial.words != words) {
                trials.push(Trial { template: template.clone(), value: length.to_string(), words });
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

fn shown(words: &[Vec<u8>], holes: &[usize]) -> String {
    let word = |(place, word): (usize, &Vec<u8>)| if holes.contains(&place) { "@".to_owned() } else { quoted(word) };
    words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

/// A word as a reader would write it: in quotes only where it must be.
fn quoted(word: &[u8]) -> String {
    let is_plain = !word.is_empty() && word.iter().all(|byte| byte.is_ascii_graphic() && !b"\"'@".contains(byte));
    if is_plain { String::from_utf8_lossy(word).into_owned() } else { quote(word) }
}
