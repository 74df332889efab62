//! Laws of homes of logs, and replicas that are killed, over an object store:
//!
//!     moto_server -H 127.0.0.1 -p 5555 &   # and make a bucket
//!     AWS_ENDPOINT_URL=http://127.0.0.1:5555 AWS_ALLOW_HTTP=true AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=x \
//!       PALMETTE_TEST_LOG=s3://bucket/prefix PALMETTE_KILLS=50 cargo test --no-default-features --features aws
//!
//! Without `PALMETTE_TEST_LOG` nothing is tested. The prefix must have nothing.

#[path = "../../crates/catalog-replica/tests/replicas/crew.rs"]
#[allow(dead_code, reason = "shared with tests that use all of it")]
mod crew;
#[path = "../../crates/catalog-replica/tests/replicas/kill.rs"]
mod kill;
#[path = "../../crates/catalog-replica/tests/replicas/laws.rs"]
mod laws;

#[test]
fn a_store_by_its_address_keeps_them() {
    palmette_clouds::add_homes();
    laws::check_by_address();
}

#[test]
fn replicas_that_are_killed_lose_nothing() {
    palmette_clouds::add_homes();
    if std::env::var_os(kill::CHILD).is_some() || std::env::var_os("PALMETTE_TEST_LOG").is_none() {
        return;
    }
    kill::run();
}

#[test]
fn child() {
    palmette_clouds::add_homes();
    kill::child();
}
