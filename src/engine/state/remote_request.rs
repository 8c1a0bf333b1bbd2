//! Requests to another server (MIGRATE), and their results.
//!
//! The engine has no sockets: it hands a [`RemoteRequest`] to its [`crate::engine::Host`] and gets a [`RemoteResult`].
//! Nothing else runs in between, so what the command read before still holds afterwards. Redis does the same.

use crate::resp::{Protocol, Reply};

/// Requests to another server, which answers each with one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteRequest {
    /// The other server: a name or an address.
    pub host: String,
    /// The port of the other server.
    pub port: u16,
    /// The database there that the requests are for.
    pub database: i64,
    /// A request that logs in before; empty for none.
    pub login: Vec<u8>,
    /// The requests, one behind the other.
    pub requests: Vec<u8>,
    /// The number of requests.
    pub count: usize,
    /// The time limit of each step (to connect, to send a part, to wait for a line), in milliseconds.
    pub timeout_ms: u64,
}

/// The result of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteResult {
    /// The error with which the other server answered the login, or else the choice of the database.
    pub refusal: Option<Vec<u8>>,
    /// The lines that answered the requests, without their ends: all, or fewer if there was a fault.
    pub replies: Vec<Vec<u8>>,
    /// The fault that ended the replies early.
    pub fault: Option<RemoteFault>,
}

/// The step at which the connection to the other server was lost or timed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteFault {
    /// The other server could not be reached.
    Connecting,
    /// The other server did not accept the requests.
    Writing,
    /// The other server did not reply.
    Reading,
}

impl RemoteRequest {
    /// The request that chooses the database there.
    pub fn choice(&self) -> Vec<u8> {
        let mut request = Vec::new();
        let mut words = Reply::new(&mut request, Protocol::Resp2);
        words.array(2);
        words.bulk(b"SELECT");
        words.bulk(itoa::Buffer::new().format(self.database).as_bytes());
        request
    }

    /// The requests that come first on a new connection: the login, if there is one, and the choice of the database.
    pub fn greeting(&self) -> Vec<u8> {
        [self.login.clone(), self.choice()].concat()
    }
}

impl RemoteResult {
    /// Creates a result with a fault and nothing else.
    pub fn of(fault: RemoteFault) -> RemoteResult {
        RemoteResult { fault: Some(fault), ..RemoteResult::default() }
    }

    /// The error line with which the other server refused the request with that number, or all of them.
    pub fn refusal_of(&self, number: usize) -> Option<&[u8]> {
        let reply = self.replies.get(number)?;
        self.refusal.as_ref().or(reply.starts_with(b"-").then_some(reply)).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_after_a_refused_login_is_refused() {
        let replies = vec![b"+OK".to_vec(), b"-BUSYKEY".to_vec()];
        let mut report = RemoteResult { replies, ..RemoteResult::default() };
        assert_eq!([0, 1, 2].map(|number| report.refusal_of(number)), [None, Some(&b"-BUSYKEY"[..]), None]);
        report.refusal = Some(b"-NOAUTH".to_vec());
        let noauth = Some(&b"-NOAUTH"[..]);
        assert_eq!([0, 1, 2].map(|number| report.refusal_of(number)), [noauth, noauth, None]);
    }
}
