//! The built-in shop.

use std::sync::OnceLock;

use crate::command::run;

/// The built-in shop as files, with its catalog; made once.
pub(crate) struct Shop {
    dir: tempfile::TempDir,
}

impl Shop {
    pub(crate) fn get() -> &'static Self {
        static SHOP: OnceLock<Shop> = OnceLock::new();
        SHOP.get_or_init(|| {
            let shop = Shop { dir: tempfile::tempdir().expect("a folder") };
            run(&["demo", "--export", shop.path("").as_str()]);
            run(&["catalog", "build", &shop.path("items.jsonl"), "--out", &shop.path("shop.palm")]);
            shop
        })
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    /// `--model … --catalog …`
    pub(crate) fn recommender(&self) -> [String; 4] {
        ["--model".into(), self.path("model"), "--catalog".into(), self.path("shop.palm")]
    }
}

pub(crate) fn with_recommender<'a>(
    command: &'a str,
    shop: &'a [String; 4],
    rest: &[&'a str],
) -> Vec<&'a str> {
    [&[command], shop.each_ref().map(String::as_str).as_slice(), rest].concat()
}
