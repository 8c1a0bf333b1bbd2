//! What the workers of a program know, compared with what its cluster has.
//!
//! An acknowledged number is there, and one whose reply was an error may be. A number is there twice only if a client
//! sent it again because the connection had broken before the reply came, which happens once for each list and each
//! node that was killed. A message may be missing only between the end of a subscription and the next, so a channel has
//! at most one gap for each time that the client has subscribed again.

use std::panic::catch_unwind;

use redis::cluster::{ClusterClient, ClusterConnection};
use redis::{Commands, RedisResult};

/// What a program says something about for each number of a worker (`#`), by the kinds of workers.
const SUBJECTS: [(&str, &[&str]); 6] = [
    ("append", &["list {#}:appended"]),
    (
        "pipeline",
        &[
            "list piped:#:0",
            "list piped:#:1",
            "list piped:#:2",
            "list piped:#:3",
            "list piped:#:4",
            "list piped:#:5",
            "list piped:#:6",
            "list piped:#:7",
        ],
    ),
    ("transaction", &["list {#}:left", "list {#}:right"]),
    ("script", &["list {#}:script:left", "list {#}:script:right"]),
    ("news", &["channel news:#"]),
    ("events", &["channel {#}:events"]),
];

/// Panics if a program does not say something about all that it does not leave out, once.
pub fn are_complete(lines: &[String], is_left_out: impl Fn(&str) -> bool) {
    let kept = SUBJECTS.iter().filter(|(kind, _)| !is_left_out(kind)).flat_map(|(_, subjects)| *subjects);
    let of_workers = kept.flat_map(|subject| ["0", "1"].map(|number| subject.replace('#', number)));
    let mut expected: Vec<String> = of_workers.chain(["counter {0}:watched".to_owned()]).collect();
    let subject = |line: &String| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let mut said: Vec<String> = lines.iter().map(subject).collect();
    expected.sort();
    said.sort();
    assert_eq!(said, expected, "what the program says something about");
}

/// The numbers of a line: `-` is none.
fn numbers(text: &str) -> Vec<usize> {
    text.split(',').filter(|text| *text != "-").map(|text| text.parse().expect("it is a number")).collect()
}

/// Panics if what the nodes of a cluster have is not what these lines say. `resubscriptions` are the numbers of times
/// that the nodes have run SUBSCRIBE and SSUBSCRIBE since the program was ready.
pub fn agree_with(port: &str, lines: &[String], kills: usize, resubscriptions: [u64; 2]) {
    let client = ClusterClient::new([format!("redis://127.0.0.1:{port}/")]).expect("the address is right");
    let mut cluster = client.get_connection().expect("it answers");
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["list", key, sent, unknown] => list(&mut cluster, key, last(sent), &numbers(unknown), kills),
            ["counter", key, sent, acknowledged] => counter(&mut cluster, key, last(sent), last(acknowledged)),
            ["channel", name, sent, unknown, heard] => {
                let resubscriptions = resubscriptions[usize::from(name.starts_with('{'))];
                assert!(numbers(heard).iter().all(|number| *number <= last(sent)), "{name} has what nobody sent");
                channel(name, &numbers(unknown), &numbers(heard), resubscriptions);
            }
            _ => panic!("what does this say: {line}"),
        }
    }
}

fn last(sent: &str) -> usize {
    sent.parse().expect("it is a number")
}

fn stored(cluster: &mut ClusterConnection, key: &str) -> Vec<usize> {
    let stored: RedisResult<Vec<usize>> = cluster.lrange(key, 0, -1);
    stored.expect("the cluster answers")
}

fn list(cluster: &mut ClusterConnection, key: &str, sent: usize, unknown: &[usize], kills: usize) {
    let stored = stored(cluster, key);
    assert!(is_known_sorted(&stored, unknown), "{key} is out of order: {stored:?}, unknown are {unknown:?}");
    let different = sorted(&stored);
    assert!(stored.len() - different.len() <= kills, "{key} has more than {kills} twice: {stored:?}");
    assert!(different.iter().all(|number| (1..=sent).contains(number)), "{key} has what nobody sent: {stored:?}");
    let is_lost = |number: &usize| different.binary_search(number).is_err() && !unknown.contains(number);
    let lost: Vec<usize> = (1..=sent).filter(is_lost).collect();
    assert!(lost.is_empty(), "{key} has lost {lost:?}");
    if let Some(start) = key.strip_suffix("left") {
        let other = sorted(&self::stored(cluster, &format!("{start}right")));
        assert_eq!(different, other, "{start}left and {start}right were changed together");
    }
}

/// Whether the numbers are in order that the program knows to have arrived. One whose reply has not come in time may
/// arrive later: it was on its way to a node that did not answer.
fn is_known_sorted(numbers: &[usize], unknown: &[usize]) -> bool {
    numbers.iter().filter(|number| !unknown.contains(number)).is_sorted()
}

/// The different numbers in their order.
fn sorted(numbers: &[usize]) -> Vec<usize> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}

fn counter(cluster: &mut ClusterConnection, key: &str, sent: usize, acknowledged: usize) {
    let stored = stored(cluster, key);
    assert!((acknowledged..=sent).contains(&stored.len()), "{key}: {acknowledged} of {sent}, but {}", stored.len());
    let counted: Vec<usize> = (1..=stored.len()).collect();
    assert_eq!(stored, counted, "{key}: who read the same length did not append the same number");
}

fn channel(name: &str, unknown: &[usize], heard: &[usize], resubscriptions: u64) {
    // A client may have subscribed at the new node already when it hears the last of the old one.
    assert!(is_known_sorted(heard, unknown), "{name} is out of order: {heard:?}, unknown are {unknown:?}");
    let heard = sorted(heard);
    // What came after the last that was heard may be on its way when the program ends.
    let mut gaps = 0;
    let mut is_in_gap = false;
    for number in 1..=heard.last().copied().unwrap_or(0) {
        let is_heard = heard.binary_search(&number).is_ok();
        let is_lost = !is_heard && !unknown.contains(&number);
        gaps += u64::from(is_lost && !is_in_gap);
        is_in_gap = is_lost || is_in_gap && !is_heard;
    }
    assert!(
        gaps <= resubscriptions,
        "{name} has lost messages {gaps} times, and was subscribed to {resubscriptions} again"
    );
}

#[test]
fn a_channel_may_lose_messages_as_often_as_it_was_subscribed_to_again() {
    channel("news:0", &[2], &[1, 3], 0);
    channel("news:0", &[], &[1, 3, 4, 7], 2);
    channel("news:0", &[2], &[1, 3, 2, 4], 0);
    catch_unwind(|| channel("news:0", &[], &[1, 3, 2, 4], 0)).expect_err("2 is known, and comes behind 3");
    catch_unwind(|| channel("news:0", &[], &[1, 3], 0)).expect_err("2 is lost without a reason");
    catch_unwind(|| channel("news:0", &[], &[1, 3, 4, 7], 1)).expect_err("one gap has no reason");
}

#[test]
fn a_program_says_something_about_all_that_it_does_not_leave_out() {
    let kept = |kind: &str| kind != "news";
    let lines = ["channel news:0 9 - 1", "counter {0}:watched 9 9", "channel news:1 9 - 1"].map(str::to_owned);
    are_complete(&lines, kept);
    catch_unwind(|| are_complete(&lines[..2], kept)).expect_err("a channel is missing");
    catch_unwind(|| are_complete(&lines, |_| true)).expect_err("news are left out");
}
