//! The requests by which a client of a simulated run changes the data.

use crate::support::choices::Choices;
use crate::support::world::START;

/// A script that changes two keys.
const SCRIPT: &str = "redis.call('INCR',KEYS[1])redis.call('RPUSH',KEYS[2],ARGV[1],ARGV[1])";

/// A client that sends different requests.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// The number of the last request.
    number: usize,
    /// The number of deadlines that were set, so that no two keys expire at once.
    deadlines: i64,
}

impl Requests {
    /// Makes the next request.
    pub(crate) fn make(&mut self, choices: &mut Choices<'_>) -> String {
        self.number += 1;
        let (key, number) = (choices.below(4), self.number);
        match choices.below(18) {
            0 => format!("SET text:{key} {number}"),
            1 => format!("APPEND text:{key} {}", "x".repeat(1 + choices.below(699))),
            2 => format!("INCRBY number:{key} {number}"),
            3 => format!("RPUSH list:{key} {number} {number}"),
            4 => format!("LPOP list:{key}"),
            5 => format!("HSET hash:{key} field:{} {number}", number % 7),
            6 => format!("HPEXPIREAT hash:{key} {} FIELDS 1 field:1", 4_000_000_000_000 + number),
            7 => format!("SADD set:{key} {number} {}", number % 5),
            8 => format!("SPOP set:{key}"),
            9 => format!("ZADD zset:{key} {number} member:{}", number % 9),
            10 => format!("XADD stream:{key} * number {number}"),
            11 => format!("XTRIM stream:{key} MAXLEN 3"),
            12 => format!("PEXPIREAT text:{key} {}", 4_000_000_000_000 + number),
            13 => format!("DEL text:{key} list:{key}"),
            14 => format!("COPY list:{key} list:{} REPLACE", (key + 1) % 4),
            15 => format!("RENAME text:{key} text:{}", (key + 1) % 4),
            16 => {
                self.deadlines += 1;
                format!("PEXPIREAT number:{key} {}", START.unix_us / 1000 + 20 + self.deadlines)
            }
            _ => format!("EVAL {SCRIPT} 2 number:{key} list:{key} {number}"),
        }
    }
}
