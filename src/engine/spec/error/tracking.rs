//! Errors of CLIENT TRACKING and CLIENT CACHING.

use thiserror::Error as Texts;

/// The reason why CLIENT TRACKING or CLIENT CACHING failed.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum TrackingError {
    /// CLIENT TRACKING has REDIRECT twice.
    #[error("ERR A client can only redirect to a single other client")]
    RedirectsTwice,
    /// CLIENT TRACKING redirects to a client that does not exist.
    #[error("ERR The client ID you want redirect to does not exist")]
    RedirectsNowhere,
    /// CLIENT TRACKING has PREFIX without BCAST.
    #[error("ERR PREFIX option requires BCAST mode to be enabled")]
    PrefixWithoutBroadcast,
    /// CLIENT TRACKING would switch BCAST on or off while tracking is on.
    #[error(
        "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it \
         with a different mode."
    )]
    BroadcastSwitched,
    /// CLIENT TRACKING has OPTIN or OPTOUT together with BCAST.
    #[error("ERR OPTIN and OPTOUT are not compatible with BCAST")]
    BroadcastWithChoice,
    /// CLIENT TRACKING has both OPTIN and OPTOUT.
    #[error("ERR You can't specify both OPTIN mode and OPTOUT mode")]
    BothChoices,
    /// CLIENT TRACKING would switch between OPTIN and OPTOUT while tracking is on.
    #[error(
        "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it \
         with a different mode."
    )]
    ChoiceSwitched,
    /// A prefix for CLIENT TRACKING overlaps with one that the client already has.
    #[error(
        "ERR Prefix '{given}' overlaps with an existing prefix '{existing}'. Prefixes for a single client must not \
         overlap."
    )]
    PrefixExists {
        /// The new prefix.
        given: String,
        /// The prefix that the client already has.
        existing: String,
    },
    /// Two prefixes of one CLIENT TRACKING command overlap.
    #[error(
        "ERR Prefix '{given}' overlaps with another provided prefix '{other}'. Prefixes for a single client must not \
         overlap."
    )]
    PrefixesOverlap {
        /// The first prefix.
        given: String,
        /// A later prefix of the same command.
        other: String,
    },
    /// CLIENT CACHING is called by a client that has no tracking.
    #[error(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled"
    )]
    CachingWithoutTracking,
    /// CLIENT CACHING YES is called by a client whose tracking has no OPTIN.
    #[error("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")]
    CachingYesWithoutOptin,
    /// CLIENT CACHING NO is called by a client whose tracking has no OPTOUT.
    #[error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")]
    CachingNoWithoutOptout,
}
