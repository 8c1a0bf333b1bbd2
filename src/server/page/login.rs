//! Who may read the metrics: those who may run INFO, with the users and passwords of the server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap};

use super::guards::Refusal;
use crate::acl::User;
use crate::engine::Engine;
use crate::engine::exec::rights;
use crate::resp::Requests;

const NOBODY: Refusal =
    Refusal { status: StatusCode::UNAUTHORIZED, why: "A user and a password of the server are needed.\n" };
const FORBIDDEN: Refusal = Refusal { status: StatusCode::FORBIDDEN, why: "This user has no permission to run INFO.\n" };

/// Checks the user that a request names, or else the default user. A password without a name is the default user's.
///
/// # Errors
/// Why the request is refused.
pub(super) fn check(engine: &Engine, headers: &HeaderMap) -> Result<(), Refusal> {
    let users = &engine.acl.users;
    let user = match headers.get(header::AUTHORIZATION) {
        Some(value) => {
            let (name, password) = credentials(value.as_bytes()).ok_or(NOBODY)?;
            let name = if name.is_empty() { users.default_user().name() } else { &name };
            users.authenticated(name, &password).ok_or(NOBODY)?
        }
        None if users.must_log_in() => return Err(NOBODY),
        None => users.default_user(),
    };
    if may_run_info(engine, user) { Ok(()) } else { Err(FORBIDDEN) }
}

fn may_run_info(engine: &Engine, user: &User) -> bool {
    let requests = Requests::of([&b"INFO"[..]]);
    requests.iter().any(|request| {
        let command = engine.table.resolve(request);
        command.is_ok_and(|(id, _)| rights::may_run(engine, user, id, request).is_ok())
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
