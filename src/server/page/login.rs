//! Logins to the page: the users and passwords of the server, by the scheme Basic. A failed one is in ACL LOG.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap};

use super::guards::Refusal;
use crate::acl::User;
use crate::engine::Engine;
use crate::engine::exec::acl;
use crate::resp::Requests;

const NOBODY: Refusal =
    Refusal { status: StatusCode::UNAUTHORIZED, why: "A user and a password of the server are needed.\n" };
const FORBIDDEN: Refusal = Refusal { status: StatusCode::FORBIDDEN, why: "This user has no permission to run INFO.\n" };

/// The user that a request names, or else the default user. A password without a name is the default user's.
///
/// # Errors
/// The request names none, but users have to log in; or the password is wrong.
pub(super) fn user(engine: &mut Engine, headers: &HeaderMap, peer: SocketAddr) -> Result<Arc<User>, Refusal> {
    let users = &engine.acl.users;
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        let user = Arc::clone(users.default_user());
        return if users.must_log_in() { Err(NOBODY) } else { Ok(user) };
    };
    let (name, password) = credentials(value.as_bytes()).ok_or(NOBODY)?;
    let name = if name.is_empty() { users.default_user().name().to_vec() } else { name };
    let client = format!("addr={peer} name=page");
    acl::authenticate(engine, &name, &password, b"page", &client).ok_or(NOBODY)
}

/// Checks that the user of a request may run INFO.
///
/// # Errors
/// Those of [`user`], or it may not.
pub(super) fn check(engine: &mut Engine, headers: &HeaderMap, peer: SocketAddr) -> Result<(), Refusal> {
    let user = user(engine, headers, peer)?;
    if may_run(engine, &user, b"INFO") { Ok(()) } else { Err(FORBIDDEN) }
}

/// Whether a user may run a command without arguments.
fn may_run(engine: &Engine, user: &User, name: &[u8]) -> bool {
    let requests = Requests::of([name]);
    requests.iter().any(|request| {
        let command = engine.table.resolve(request);
        command.is_ok_and(|(id, _)| acl::may_run(engine, user, id, request).is_ok())
    })
}

/// The name and the password of the scheme Basic.
fn credentials(value: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (scheme, coded) = value.split_at_checked(6)?;
    let decoded = STANDARD.decode(coded.trim_ascii()).ok().filter(|_| scheme.eq_ignore_ascii_case(b"Basic "))?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    Some((decoded[..colon].to_vec(), decoded[colon + 1..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_a_name_and_a_password_that_may_have_colons() {
        let read = |text: &str| credentials(text.as_bytes());
        assert_eq!(read("Basic YTpiOmM="), Some((b"a".to_vec(), b"b:c".to_vec())));
        assert_eq!(read("basic  OnB3"), Some((Vec::new(), b"pw".to_vec())));
        for wrong in ["", "Basic", "Basic ", "Bearer YTpi", "Basic !!!!", "Basic YWI=", "B\u{e4}sic YTpi"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
