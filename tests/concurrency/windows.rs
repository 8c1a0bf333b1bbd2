//! Sorted sets by time or by score: leaderboards, recency lists, presence.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use dunlin::Server;
use fastrand::Rng;
use redis::{Commands, pipe};

use crate::{at_once, connect};

#[test]
fn eight_writers_of_a_leaderboard_agree_with_a_model() {
    const BOARD: &str = "leaderboard:game:20261121";
    let server = Server::start().expect("it starts");
    let points = at_once(&server, 8, |number, connection| {
        let mut rng = Rng::with_seed(number as u64);
        let mut mine = BTreeMap::new();
        for _ in 0..500 {
            let (user, points) = (format!("user-{}", rng.u8(..40)), rng.i64(1..100));
            let total: i64 = connection.zincr(BOARD, &user, points).expect("it is answered");
            assert!(total >= points);
            *mine.entry(user).or_insert(0) += points;
        }
        mine
    });
    let mut model: BTreeMap<String, i64> = BTreeMap::new();
    for (user, points) in points.into_iter().flatten() {
        *model.entry(user).or_default() += points;
    }
    let mut expected: Vec<(String, i64)> = model.into_iter().collect();
    expected.sort_by(|(a, more), (b, less)| less.cmp(more).then_with(|| b.cmp(a)));

    let mut connection = connect(&server);
    let top: Vec<(String, i64)> = connection.zrevrange_withscores(BOARD, 0, -1).expect("it is there");
    assert_eq!(top, expected);
    for (rank, (user, _)) in expected.iter().enumerate() {
        assert_eq!(connection.zrevrank(BOARD, user), Ok(Some(rank)));
    }
}

#[test]
fn lists_of_the_last_thirty_pages_keep_the_last_thirty_with_several_writers() {
    const LISTS: usize = 5;
    let server = Server::builder().frozen().start().expect("it starts");
    at_once(&server, 8, |client, connection| {
        for page in 0..200 {
            let key = format!("rv:{}", page % LISTS);
            let time = page * 8 + client;
            let (): () = pipe()
                .zadd(&key, format!("page-{client}-{page}"), time)
                .ignore()
                .zremrangebyrank(&key, 0, -31)
                .ignore()
                .expire(&key, 86_400)
                .ignore()
                .query(connection)
                .expect("it is added");
        }
    });
    let mut connection = connect(&server);
    for list in 0..LISTS {
        let key = format!("rv:{list}");
        let pages: Vec<String> = connection.zrevrange(&key, 0, -1).expect("it is there");
        assert_eq!(pages.len(), 30);
        assert_eq!(pages[0], format!("page-7-{}", 200 - LISTS + list));
    }
    server.advance(Duration::from_secs(86_400));
    assert_eq!(redis::cmd("DBSIZE").query(&mut connection), Ok(0));
}

#[test]
fn a_client_without_heartbeats_is_no_longer_present() {
    const SEEN: &str = "user:presence:last-seen";
    const USERS: usize = 20;
    let server = Server::builder().frozen().start().expect("it starts");
    let now_ms = || server.now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let mut reader = connect(&server);
    for round in 0..USERS {
        // In each round one user more has vanished without a word.
        at_once(&server, USERS, |user, connection| {
            if user >= round {
                let _: usize = connection.zadd(SEEN, format!("user-{user:02}"), now_ms()).expect("it is noted");
            }
        });
        let present: Vec<String> = reader.zrangebyscore(SEEN, now_ms() - 30_000, "+inf").expect("they are there");
        let just_left = round.min(3);
        assert_eq!(present.len(), USERS - round + just_left, "in round {round}");
        server.advance(Duration::from_secs(10));
    }
    let gone: usize = reader.zrembyscore(SEEN, "-inf", now_ms() - 30_000).expect("they are cleaned up");
    let left: usize = reader.zcard(SEEN).expect("it is there");
    assert_eq!((gone, left), (USERS - 2, 2));
}
