//! First request: what is no server to measure is told from what is.

use std::net::TcpListener;
use std::time::Duration;

use palmette_serve_loadtest::{CheckError, Driver, Endpoint, Requests, Settings};

use crate::server::{Reply, Server, settings};

fn checked(reply: Reply) -> Result<(), CheckError> {
    let server = Server::start(move |_, _| reply.clone());
    let timeout = Duration::from_millis(400);
    server.driver(Settings { timeout, ..settings() }).check()
}

#[track_caller]
fn check_refused(reply: Reply, words: &[&str]) {
    let error = checked(reply).unwrap_err().to_string();
    for word in ["http://127.0.0.1:"].iter().chain(words) {
        assert!(error.contains(word), "{error} lacks {word}");
    }
}

#[test]
fn servers_that_can_be_measured() {
    for reply in [
        Reply::items("[]"),
        Reply::problem(429, "full"),
        Reply::problem(503, "starting"),
        Reply::Http(504, "text/html", "<html>".into()),
    ] {
        let text = format!("{reply:?}");
        assert_eq!(checked(reply), Ok(()), "{text}");
    }
}

#[test]
fn servers_that_cannot() {
    let html = |status| Reply::Http(status, "text/html", "<html>hello".into());
    let none = ["no Palmette server", "/v1/recommend", "palmette serve"];
    check_refused(html(404), &[&none[..], &["status 404", "text/html", "<html>hello"]].concat());
    check_refused(html(200), &none);
    check_refused(html(501), &none);
    check_refused(Reply::Http(200, "application/json", "{\"ok\": true}".into()), &none);
    check_refused(Reply::problem(404, "no target shop"), &["status 404", "no target shop"]);
    check_refused(Reply::problem(422, "k is 0"), &["first request", "status 422", "k is 0"]);
    check_refused(Reply::problem(401, "no key"), &["wants a key", "no key", "key file"]);
    check_refused(Reply::Raw("SSH-2.0-OpenSSH_9.2\r\n"), &["cannot be reached", "palmette serve"]);
    check_refused(Reply::Never, &["does not answer within 0.4 s"]);
}

#[test]
fn nobody_listens() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let endpoint = Endpoint::parse(&format!("http://127.0.0.1:{port}")).unwrap();
    let requests = Requests::new(vec!["{}".into()], 1);
    let error = Driver::new(endpoint, requests, settings()).unwrap().check().unwrap_err();
    assert!(matches!(error, CheckError::Unreachable { .. }));
    assert!(error.to_string().contains("palmette serve"), "{error}");
}

#[test]
fn messages_are_as_the_interface_wants_them() {
    let server = Server::start(|_, _| Reply::items("[]"));
    let endpoint = Endpoint::parse(&format!("http://{}/eu/", server.address)).unwrap();
    let requests = Requests::new(vec!["{\"k\": 1}".into()], 1);
    for key in ["", "two words", "ü", "a\r\nb"] {
        assert!(requests.clone().with_key(key).is_err(), "{key:?}");
    }
    let requests = requests.with_key("s3cret").unwrap();
    assert!(!format!("{requests:?}").contains("s3cret"));
    Driver::new(endpoint, requests, settings()).unwrap().check().unwrap();
    let seen = server.seen.lock().unwrap();
    let (head, body) = &seen[0];
    let lines: Vec<String> = head.lines().map(str::to_lowercase).collect();
    assert_eq!(lines[0], "post /eu/v1/recommend http/1.1");
    for line in [
        &format!("host: {}", server.address),
        "content-type: application/json",
        "authorization: bearer s3cret",
        "content-length: 8",
    ] {
        assert!(lines.iter().any(|l| l == line), "{line}: {head}");
    }
    assert_eq!(body, "{\"k\": 1}");
}
