//! CONFIG SET: what it changes, and which values without effect it refuses.

use dunlin::engine::exec::acl;
use dunlin::engine::{Effect, Permission};

use crate::world::World;

fn changed_settings(world: &mut World) -> Vec<&'static str> {
    let names = world.engine.effects.take().into_iter().filter_map(|effect| match effect {
        Effect::Setting(name) => Some(name),
        _ => None,
    });
    names.collect()
}

#[test]
fn config_set_refuses_values_without_effect() {
    let mut world = World::fresh();
    let no_jemalloc = "Active defragmentation cannot be enabled: it requires a Redis server compiled with a modified \
        Jemalloc like the one shipped by default with the Redis source distribution";
    for (parameter, value, actual, reason) in [
        ("activedefrag", "yes", "no", no_jemalloc),
        ("tls-port", "1", "0", "Unable to update TLS configuration. Check server logs."),
    ] {
        let reply = world.ask(&format!("CONFIG SET {parameter} {value}"));
        assert_eq!(
            reply,
            format!("-ERR CONFIG SET failed (possibly related to argument '{parameter}') - {reason}\r\n")
        );
        assert!(world.ask(&format!("CONFIG GET {parameter}")).ends_with(&format!("\r\n{actual}\r\n")));
    }
}

#[test]
fn a_setting_that_nothing_depends_on_stores_any_value() {
    let mut world = World::fresh();
    for (parameter, value) in [
        ("lazyfree-lazy-eviction", "yes"),
        ("repl-backlog-size", "10485760"),
        ("tls-ciphers", "a"),
        ("shutdown-on-sigint", "force"),
        ("crash-log-enabled", "no"),
        ("proc-title-template", "{title}"),
    ] {
        assert_eq!(world.ask(&format!("CONFIG SET {parameter} {value}")), "+OK\r\n");
        assert!(world.ask(&format!("CONFIG GET {parameter}")).ends_with(&format!("\r\n{value}\r\n")));
    }
}

#[test]
fn the_working_directory_is_protected_and_must_exist() {
    for (permission, reason) in
        [(Permission::No, "can't set protected config"), (Permission::Yes, "No such file or directory")]
    {
        let mut world = World::with(|settings| settings.protected_configs = permission);
        let refusal = format!("(possibly related to argument 'dir') - {reason}");
        assert_eq!(world.ask("CONFIG SET dir /"), format!("-ERR CONFIG SET failed {refusal}\r\n"));
    }
}

#[test]
fn each_changed_setting_is_an_effect_with_the_name_of_its_row() {
    let mut world = World::fresh();
    world.ask("CONFIG SET TIMEOUT 5 zset-max-ziplist-value 6");
    assert_eq!(changed_settings(&mut world), ["timeout", "zset-max-listpack-value"]);
}

#[test]
fn a_refused_pair_changes_no_setting_and_has_no_effect() {
    let mut world = World::fresh();
    world.ask("CONFIG SET timeout 5 maxclients 0");
    assert_eq!(world.engine.settings.timeout_s, 0);
    assert!(changed_settings(&mut world).is_empty());
}

#[test]
fn a_client_from_before_the_password_was_cleared_needs_no_login_afterwards() {
    let mut world = World::with(|settings| settings.password = "secret".to_owned());
    let client = world.join();
    assert!(world.ask_as(client, "PING").0.starts_with("-NOAUTH"));
    acl::set_default_password(&mut world.engine, "");
    assert_eq!(world.ask_as(client, "PING").0, "+PONG\r\n");
}

#[test]
fn the_limits_of_packed_sorted_sets_follow_config_set() {
    let mut world = World::fresh();
    world.ask("CONFIG SET zset-max-listpack-entries 1");
    world.ask("ZADD board 1 ann 2 ben");
    assert_eq!(world.ask("OBJECT ENCODING board"), "$8\r\nskiplist\r\n");
}

#[test]
fn a_rate_covers_the_last_second_and_a_half() {
    let mut world = World::fresh();
    world.ask("PING");
    for _ in 0..20 {
        world.ask("PING");
    }
    world.pass_ms(1000);
    assert!(world.ask("INFO stats").contains("\r\ninstantaneous_ops_per_sec:13\r\n"));
    world.pass_ms(2000);
    assert!(world.ask("INFO stats").contains("\r\ninstantaneous_ops_per_sec:0\r\n"));
    (0..100).for_each(|_| _ = world.ask("PING"));
    world.pass_ms(1000);
    world.ask("CONFIG RESETSTAT");
    assert!(world.ask("INFO stats").contains("\r\ninstantaneous_ops_per_sec:0\r\n"));
}

#[test]
fn too_many_error_codes_are_reported_in_the_log() {
    let mut world = World::fresh();
    for number in 0..130 {
        world.send(world.client, &[b"EVAL", format!("return {{err = 'E{number} made up'}}").as_bytes(), b"0"]);
    }
    assert!(world.ask("INFO memory").contains("lazyfreed_objects:128\r\n"));
    let effects = world.engine.effects.take().into_iter();
    let lines: Vec<String> =
        effects.filter_map(|effect| if let Effect::Log(_, line) = effect { Some(line) } else { None }).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("Errorstats stopped adding new errors"), "{lines:?}");
    assert!(lines[1].starts_with("Current errors code list: (E0, E1, E10, "), "{lines:?}");
}
