//! Parameters of TLS, which is not supported: what would encrypt a connection has a fixed value, the others are stored
//! without effect.

use super::INT;
use crate::config::parameter::{Backing, Parameter};

/// The error for a value that asks for TLS.
pub(super) const REFUSAL: &str = "Unable to update TLS configuration. Check server logs.";

pub(super) const ROWS: &[Parameter] = &[
    Parameter::choice("tls-auth-clients", &["no", "yes", "optional"], Backing::NoEffect("yes")),
    Parameter::text("tls-ca-cert-dir", Backing::NoEffect("")),
    Parameter::text("tls-ca-cert-file", Backing::NoEffect("")),
    Parameter::text("tls-cert-file", Backing::NoEffect("")),
    Parameter::text("tls-ciphers", Backing::NoEffect("")),
    Parameter::text("tls-ciphersuites", Backing::NoEffect("")),
    Parameter::text("tls-client-cert-file", Backing::NoEffect("")),
    Parameter::text("tls-client-key-file", Backing::NoEffect("")),
    Parameter::text("tls-client-key-file-pass", Backing::NoEffect("")),
    Parameter::switch("tls-cluster", Backing::Fixed("no")).or_refuse().refusing(REFUSAL),
    Parameter::text("tls-dh-params-file", Backing::NoEffect("")),
    Parameter::text("tls-key-file", Backing::NoEffect("")),
    Parameter::text("tls-key-file-pass", Backing::NoEffect("")),
    Parameter::switch("tls-prefer-server-ciphers", Backing::NoEffect("no")),
    Parameter::text("tls-protocols", Backing::NoEffect("")),
    Parameter::switch("tls-replication", Backing::Fixed("no")).or_refuse().refusing(REFUSAL),
    Parameter::number("tls-session-cache-size", 0, INT, Backing::NoEffect("20480")),
    Parameter::number("tls-session-cache-timeout", 0, INT, Backing::NoEffect("300")),
    Parameter::switch("tls-session-caching", Backing::NoEffect("yes")),
];
