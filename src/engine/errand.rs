//! What the engine has told to another server (MIGRATE), and what comes of it.
//!
//! The engine has no sockets: it hands an [`Errand`] to its [`crate::engine::Host`] and gets a [`Report`]. Nothing else
//! happens in between, so what it read before the errand still holds after it. Redis does the same.

/// Requests to another server, which answers each with one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errand {
    /// The other server: a name or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The database there that the requests are for.
    pub database: i64,
    /// A request that logs in before; empty for none.
    pub login: Vec<u8>,
    /// The requests, one behind the other.
    pub requests: Vec<u8>,
    /// How many they are.
    pub count: usize,
    /// How long each step may take: to connect, to send a part, to wait for a line.
    pub patience_ms: u64,
}

/// What came of an errand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The error with which the other server answered the login, or else the choice of the database.
    pub refusal: Option<Vec<u8>>,
    /// The lines that answered the requests, without their ends: all, or fewer if there was a fault.
    pub replies: Vec<Vec<u8>>,
    /// Why there are no more of them.
    pub fault: Option<Fault>,
}

/// At which step the other server was lost, or took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It could not be reached.
    Connecting,
    /// It did not take the requests.
    Writing,
    /// It did not answer.
    Reading,
}

impl Report {
    /// One of nothing but a fault.
    pub fn of(fault: Fault) -> Report {
        Report { fault: Some(fault), ..Report::default() }
    }

    /// The line in which the other server refused the request of that number, or all of them.
    pub fn refusal_of(&self, number: usize) -> Option<&[u8]> {
        let reply = self.replies.get(number)?;
        self.refusal.as_ref().or(reply.starts_with(b"-").then_some(reply)).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_come_in_is_refused_whatever_is_answered_then() {
        let replies = vec![b"+OK".to_vec(), b"-BUSYKEY".to_vec()];
        let mut report = Report { replies, ..Report::default() };
        assert_eq!([0, 1, 2].map(|number| report.refusal_of(number)), [None, Some(&b"-BUSYKEY"[..]), None]);
        report.refusal = Some(b"-NOAUTH".to_vec());
        let noauth = Some(&b"-NOAUTH"[..]);
        assert_eq!([0, 1, 2].map(|number| report.refusal_of(number)), [noauth, noauth, None]);
    }
}
