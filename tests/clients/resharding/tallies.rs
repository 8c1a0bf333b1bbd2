//! What the workers of a program know, compared with what its cluster has.
//!
//! An acknowledged number is there, and one whose reply was an error may be. A number is there twice only if a client
//! sent it again because the connection had broken before the reply came, which happens once for each list and each
//! node that was killed. A message may be missing only between the end of a subscription and the next.

use redis::cluster::{ClusterClient, ClusterConnection};
use redis::{Commands, RedisResult};

/// The numbers of a line: `-` is none.
fn numbers(text: &str) -> Vec<usize> {
    text.split(',').filter(|text| *text != "-").map(|text| text.parse().expect("it is a number")).collect()
}

/// Panics if what the nodes of a cluster have is not what these lines say. `subscriptions` are the numbers of times
/// that the nodes have run SUBSCRIBE and SSUBSCRIBE.
pub fn agree_with(port: &str, lines: &[String], kills: usize, subscriptions: [u64; 2]) {
    let client = ClusterClient::new([format!("redis://127.0.0.1:{port}/")]).expect("the address is right");
    let mut cluster = client.get_connection().expect("it answers");
    assert!(lines.len() > 4, "the program says what it knows: {lines:?}");
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["list", key, sent, unknown] => list(&mut cluster, key, last(sent), &numbers(unknown), kills),
            ["counter", key, sent, acknowledged] => counter(&mut cluster, key, last(sent), last(acknowledged)),
            ["channel", name, sent, unknown, heard] => {
                let subscriptions = subscriptions[usize::from(name.starts_with('{'))];
                assert!(numbers(heard).iter().all(|number| *number <= last(sent)), "{name} has what nobody sent");
                channel(name, &numbers(unknown), &numbers(heard), subscriptions);
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
    assert!(stored.is_sorted(), "{key} is out of order: {stored:?}");
    let mut different = stored.clone();
    different.dedup();
    assert!(stored.len() - different.len() <= kills, "{key} has more than {kills} twice: {stored:?}");
    assert!(different.iter().all(|number| (1..=sent).contains(number)), "{key} has what nobody sent: {stored:?}");
    let is_lost = |number: &usize| different.binary_search(number).is_err() && !unknown.contains(number);
    let lost: Vec<usize> = (1..=sent).filter(is_lost).collect();
    assert!(lost.is_empty(), "{key} has lost {lost:?}");
    if let Some(start) = key.strip_suffix("left") {
        let mut other = self::stored(cluster, &format!("{start}right"));
        other.dedup();
        assert_eq!(different, other, "{start}left and {start}right were changed together");
    }
}

fn counter(cluster: &mut ClusterConnection, key: &str, sent: usize, acknowledged: usize) {
    let stored = stored(cluster, key);
    assert!((acknowledged..=sent).contains(&stored.len()), "{key}: {acknowledged} of {sent}, but {}", stored.len());
    let counted: Vec<usize> = (1..=stored.len()).collect();
    assert_eq!(stored, counted, "{key}: who read the same length did not append the same number");
}

fn channel(name: &str, unknown: &[usize], heard: &[usize], subscriptions: u64) {
    // A client may have subscribed at the new node already when it hears the last of the old one.
    assert!(heard.is_sorted(), "{name} is out of order: {heard:?}");
    // What came after the last that was heard may be on its way when the program ends.
    let mut gaps = 0;
    let mut is_in_gap = false;
    for number in 1..=heard.last().copied().unwrap_or(0) {
        let is_heard = heard.binary_search(&number).is_ok();
        let is_lost = !is_heard && !unknown.contains(&number);
        gaps += u64::from(is_lost && !is_in_gap);
        is_in_gap = is_lost || is_in_gap && !is_heard;
    }
    assert!(gaps < subscriptions.max(1), "{name} has lost messages {gaps} times in {subscriptions} subscriptions");
}
