//! Parameters of TLS, which is not supported: what would encrypt a connection has a fixed value, the others are stored
//! without effect.

use super::INT;
use crate::config::parameter::{Held, Parameter};

/// The error for a value that asks for TLS.
pub(super) const REFUSAL: &str = "Unable to update TLS configuration. Check server logs.";

pub(super) const ROWS: &[Parameter] = &[
    Parameter::choice("tls-auth-clients", &["no", "yes", "optional"], Held::Idle("yes")),
    Parameter::text("tls-ca-cert-dir", Held::Idle("")),
    Parameter::text("tls-ca-cert-file", Held::Idle("")),
    Parameter::text("tls-cert-file", Held::Idle("")),
    Parameter::text("tls-ciphers", Held::Idle("")),
    Parameter::text("tls-ciphersuites", Held::Idle("")),
    Parameter::text("tls-client-cert-file", Held::Idle("")),
    Parameter::text("tls-client-key-file", Held::Idle("")),
    Parameter::text("tls-client-key-file-pass", Held::Idle("")),
    Parameter::switch("tls-cluster", Held::Always("no")).or_refuse().refusing(REFUSAL),
    Parameter::text("tls-dh-params-file", Held::Idle("")),
    Parameter::text("tls-key-file", Held::Idle("")),
    Parameter::text("tls-key-file-pass", Held::Idle("")),
    Parameter::switch("tls-prefer-server-ciphers", Held::Idle("no")),
    Parameter::text("tls-protocols", Held::Idle("")),
    Parameter::switch("tls-replication", Held::Always("no")).or_refuse().refusing(REFUSAL),
    Parameter::number("tls-session-cache-size", 0, INT, Held::Idle("20480")),
    Parameter::number("tls-session-cache-timeout", 0, INT, Held::Idle("300")),
    Parameter::switch("tls-session-caching", Held::Idle("yes")),
];
