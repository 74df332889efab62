//! Keys: each route with each kind of key, and changes of the file.

use axum::http::Method;
use palmette_serve::{NewKey, Scope, ServeConfig, Server};
use serde_json::json;

use crate::shop::{Answered, Shopping, config, shopping};

struct Guarded {
    shop: Shopping,
    file: tempfile::NamedTempFile,
    keys: Vec<(&'static str, String)>,
}

/// A server with a key for each scope, one for another catalog, and one that is for all.
fn guarded() -> Guarded {
    let file = tempfile::NamedTempFile::new().unwrap();
    let one = |name: &'static str, scopes: &[Scope], catalogs: &[&str]| {
        let catalogs: Vec<String> = catalogs.iter().map(|&name| name.to_owned()).collect();
        (name, NewKey::make(name, scopes, &catalogs).unwrap())
    };
    let made = [
        one("recommend", &[Scope::Recommend], &["items"]),
        one("items", &[Scope::Items], &["items", "more"]),
        one("admin", &[Scope::Admin], &[]),
        one("other", &Scope::ALL, &["frozen"]),
        one("all", &Scope::ALL, &[]),
    ];
    let mut text = "# name scopes catalogs sha256\n\n".to_owned();
    let mut keys = Vec::new();
    for (name, made) in made {
        text.push_str(&made.line);
        text.push('\n');
        keys.push((name, made.key));
    }
    std::fs::write(&file, text).unwrap();
    let shop = shopping(ServeConfig { keys: Some(file.path().to_owned()), ..config() });
    Guarded { shop, file, keys }
}

impl Guarded {
    async fn send(&self, key: Option<&str>, method: Method, path: &str, body: &str) -> Answered {
        let key = key.map(|name| &self.keys.iter().find(|(of, _)| *of == name).unwrap().1);
        let bearer = key.map(|key| format!("Bearer {key}"));
        let headers: Vec<(&str, &str)> =
            bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
        self.shop.send_with(method, path, &headers, body.to_owned()).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_its_scopes_and_catalogs() {
    let guarded = guarded();
    let (get, post, put) = (Method::GET, Method::POST, Method::PUT);
    let ask = r#"{"target": "shop", "k": 1}"#;
    let frozen = r#"{"target": "m:frozen", "k": 1}"#;
    let batch = r#"{"requests": [{"target": "shop", "k": 1}]}"#;
    let c = "/v1/catalogs/items";
    let at = |rest: &str| format!("{c}{rest}");
    // Statuses without a key, and with those for recommending, for items, for administration, for
    // another catalog, for all.
    for (method, path, body, wanted) in [
        (&get, "/livez".to_owned(), "", [200; 6]),
        (&get, "/readyz".to_owned(), "", [200; 6]),
        (&get, "/healthz".to_owned(), "", [200; 6]),
        (&get, "/metrics".to_owned(), "", [200; 6]),
        (&get, "/openapi.json".to_owned(), "", [200; 6]),
        (&get, "/v1/version".to_owned(), "", [401, 200, 200, 200, 200, 200]),
        (&get, "/v1/nothing".to_owned(), "", [404; 6]),
        (&post, "/v1/recommend".to_owned(), ask, [401, 200, 403, 403, 403, 200]),
        (&post, "/v1/recommend".to_owned(), frozen, [401, 403, 403, 403, 200, 200]),
        (&post, "/v1/recommend/batch".to_owned(), batch, [401, 200, 403, 403, 200, 200]),
        (&post, "/v1/recommend/stream".to_owned(), ask, [401, 200, 403, 403, 200, 200]),
        (&get, "/v1/recommend".to_owned(), "", [401, 405, 405, 405, 405, 405]),
        (&get, "/v1/targets".to_owned(), "", [401, 200, 200, 200, 200, 200]),
        (&get, "/v1/models".to_owned(), "", [401, 200, 200, 200, 200, 200]),
        (&put, "/v1/targets/a".to_owned(), "", [401, 403, 403, 400, 400, 400]),
        (&post, "/v1/targets".to_owned(), "", [401, 403, 403, 400, 400, 400]),
        (&get, "/v1/operations".to_owned(), "", [401, 200, 200, 200, 200, 200]),
        (&get, "/v1/operations/x".to_owned(), "", [401, 404, 404, 404, 404, 404]),
        (&Method::DELETE, "/v1/operations/x".to_owned(), "", [401, 403, 403, 404, 404, 404]),
        (&get, "/v1/catalogs".to_owned(), "", [401, 200, 200, 200, 200, 200]),
        (&get, at(""), "", [401, 200, 200, 200, 403, 200]),
        (&put, at(""), "", [401, 403, 403, 409, 403, 409]),
        (&Method::DELETE, at(""), "", [401, 403, 403, 409, 403, 409]),
        (&get, at("/export"), "", [401, 403, 200, 403, 403, 200]),
        (&get, at("/generations"), "", [401, 200, 200, 200, 403, 200]),
        (&post, at("/generations"), "", [401, 403, 403, 400, 403, 400]),
        (&Method::DELETE, at("/generations/9"), "", [401, 403, 403, 404, 403, 404]),
        (&post, at("/rollback"), "", [401, 403, 403, 400, 403, 400]),
        (&post, at("/items"), "", [401, 403, 422, 403, 403, 422]),
        (&post, at("/items/query"), "{}", [401, 403, 200, 403, 403, 200]),
        (&get, at("/items/P0001"), "", [401, 403, 200, 403, 403, 200]),
        (&put, at("/items/P0001"), "", [401, 403, 400, 403, 403, 400]),
        (&Method::PATCH, at("/items/P0001"), "", [401, 403, 400, 403, 403, 400]),
        (&Method::DELETE, at("/items/none"), "", [401, 403, 404, 403, 403, 404]),
        (&get, "/v1/catalogs/none".to_owned(), "", [401, 403, 403, 404, 403, 404]),
    ] {
        let keys =
            [None, Some("recommend"), Some("items"), Some("admin"), Some("other"), Some("all")];
        for (key, wanted) in keys.into_iter().zip(wanted) {
            let answer = guarded.send(key, method.clone(), &path, body).await;
            assert_eq!(answer.status, wanted, "{method} {path} by {key:?}: {}", answer.body);
            if wanted >= 400 {
                answer.problem(wanted);
            }
        }
    }
    // In a batch or stream each is judged alone.
    for (path, body) in [("/v1/recommend/batch", batch), ("/v1/recommend/stream", ask)] {
        for (key, wanted) in [("recommend", 200), ("other", 403), ("all", 200)] {
            let answer = guarded.send(Some(key), Method::POST, path, body).await.ok();
            let result = answer["results"].get(0).unwrap_or(&answer);
            assert_eq!(result["status"], wanted, "{path} by {key}: {answer}");
        }
    }
    let list = guarded.send(Some("recommend"), Method::GET, "/v1/catalogs", "").await.ok();
    assert_eq!(list["catalogs"].as_array().unwrap().len(), 1, "others' names are not shown");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_and_a_wrong_one_look_the_same() {
    let guarded = guarded();
    let good = &guarded.keys[4].1;
    let given = |value: String| {
        let shop = &guarded.shop;
        async move {
            let headers = [("authorization", value.as_str()), ("x-request-id", "r")];
            shop.send_with(Method::GET, "/v1/version", &headers, "").await
        }
    };
    let without =
        guarded.shop.send_with(Method::GET, "/v1/version", &[("x-request-id", "r")], "").await;
    assert_eq!(without.headers["www-authenticate"], "Bearer");
    for wrong in [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Basic {good}"),
        format!("Bearer {good}x"),
        format!("Bearer  {good}"),
        format!("Bearer {}", &good[1..]),
        format!("Bearer {}", "x".repeat(5000)),
        good.clone(),
    ] {
        let answer = given(wrong.clone()).await;
        assert_eq!(answer.body, without.body, "{wrong}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
        answer.problem(401);
    }
    given(format!("bearer {good}")).await.ok();
    let head = [("authorization", format!("Bearer {good}"))];
    let head: Vec<(&str, &str)> =
        head.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let answer = guarded.shop.send_with(Method::HEAD, "/v1/version", &head, "").await;
    assert_eq!(answer.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_is_read_again_when_told() {
    let guarded = guarded();
    let version = |key: &'static str| guarded.send(Some(key), Method::GET, "/v1/version", "");
    version("items").await.ok();
    let text = std::fs::read_to_string(&guarded.file).unwrap();
    let without: Vec<&str> = text.lines().filter(|line| !line.starts_with("items ")).collect();
    std::fs::write(&guarded.file, without.join("\n")).unwrap();
    version("items").await.ok();
    assert_eq!(guarded.shop.server.reload_keys().unwrap(), 4);
    version("items").await.problem(401);
    version("admin").await.ok();
    // An unsound file changes nothing, and its message shows no secret.
    std::fs::write(&guarded.file, "a admin * topsecret").unwrap();
    let error = guarded.shop.server.reload_keys().unwrap_err().to_string();
    assert!(error.contains("line 1") && !error.contains("topsecret"), "{error}");
    version("admin").await.ok();
    // No keys at all open nothing.
    std::fs::write(&guarded.file, "").unwrap();
    assert_eq!(guarded.shop.server.reload_keys().unwrap(), 0);
    version("admin").await.problem(401);
    let path = guarded.file.path().with_extension("none");
    let missing = Server::new(ServeConfig { keys: Some(path.clone()), ..config() }).unwrap_err();
    assert!(missing.to_string().contains(path.to_str().unwrap()), "{missing}");
    assert_eq!(json!(guarded.shop.get("/livez").await.ok()), "ok");
}

/// A client's second key opens what its first does, until the first is taken away.
#[tokio::test(flavor = "multi_thread")]
async fn two_keys_of_one_name_rotate() {
    let mut guarded = guarded();
    let second = NewKey::make("items", &[Scope::Items], &["items".to_owned()]).unwrap();
    second.add_to(guarded.file.path()).unwrap();
    guarded.keys.push(("second", second.key.clone()));
    assert_eq!(guarded.shop.server.reload_keys().unwrap(), 6);
    let item = |key: &'static str| {
        guarded.send(Some(key), Method::GET, "/v1/catalogs/items/items/P0001", "")
    };
    item("items").await.ok();
    item("second").await.ok();
    let text = std::fs::read_to_string(&guarded.file).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.remove(lines.iter().position(|line| line.starts_with("items ")).unwrap());
    std::fs::write(&guarded.file, lines.join("\n")).unwrap();
    assert_eq!(guarded.shop.server.reload_keys().unwrap(), 5);
    item("items").await.problem(401);
    item("second").await.ok();
}

/// Whatever a file had, a key is added so that a server reads it, or not at all.
#[test]
fn keys_are_added_to_sound_files_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keys");
    let made = || NewKey::make("web", &[Scope::Recommend], &[]).unwrap();
    let keyed = || ServeConfig { keys: Some(path.clone()), ..config() };
    let line = made().line;
    for before in [
        "".to_owned(),
        "# a comment".to_owned(),
        line.clone(),
        format!("{line}\r\n"),
        format!("\u{feff}{line}"),
    ] {
        std::fs::write(&path, &before).unwrap();
        made().add_to(&path).unwrap();
        made().add_to(&path).unwrap();
        Server::new(keyed()).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().starts_with(&before));
    }
    for (before, word) in [
        (&b"web admin * topsecret\n"[..], "line 1"),
        (b"\n\nweb", "line 3"),
        (b"\xff\xfe", "UTF-8"),
    ] {
        std::fs::write(&path, before).unwrap();
        let error = made().add_to(&path).unwrap_err().to_string();
        assert!(error.contains(word) && !error.contains("topsecret"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), before, "as it was");
    }
    std::fs::remove_file(&path).unwrap();
    made().add_to(&path).unwrap();
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert!(made().add_to(&dir.path().join("none/keys")).is_err());
    for (name, catalogs) in [
        ("a b", &[][..]),
        ("#a", &[]),
        ("", &[]),
        ("a", &["x y"]),
        ("a", &["*", "x"]),
        ("a", &[""]),
    ] {
        let catalogs: Vec<String> = catalogs.iter().map(|&name| name.to_owned()).collect();
        let error = NewKey::make(name, &[Scope::Items], &catalogs).unwrap_err().to_string();
        assert!(error.contains("A-Z a-z 0-9"), "{error}");
    }
}
