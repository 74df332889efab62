//! Layouts: what published data sets and tools call their columns, and how they end their files'
//! names.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::format::{HistoryFormat, ending};

/// Names of columns by what they hold. Of several names the first that is there counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnNames {
    pub(crate) user: &'static [&'static str],
    /// A whole history a row. A list of objects and the member that is an item are `events.aid`.
    pub(crate) histories: &'static [HistoryNames],
    /// One thing that a user did a row.
    pub(crate) item: &'static [&'static str],
    pub(crate) time: &'static [&'static str],
    /// True where two names of one meaning are told apart by nobody, and are an error.
    pub(crate) is_strict: bool,
}

/// Names that go with a column of whole histories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HistoryNames {
    pub(crate) history: &'static str,
    /// Times of its items.
    pub(crate) times: &'static [&'static str],
    /// The item that came next.
    pub(crate) target: &'static [&'static str],
}

/// Layout of a published data set, or of the files of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Name on command lines.
    pub name: &'static str,
    /// The data set and its files.
    pub about: &'static str,
    pub(crate) files: &'static [LayoutFile],
    pub(crate) columns: ColumnNames,
}

/// Files of a layout that end alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LayoutFile {
    pub(crate) endings: &'static [&'static str],
    pub(crate) format: HistoryFormat,
    /// The columns of files whose first line names none.
    pub(crate) header: &'static [&'static str],
}

const fn history(history: &'static str) -> HistoryNames {
    HistoryNames { history, times: &[], target: &[] }
}

const fn file(endings: &'static [&'static str], format: HistoryFormat) -> LayoutFile {
    LayoutFile { endings, format, header: &[] }
}

const TIMES: &[&str] = &["timestamps", "times"];
const TARGET: &[&str] = &["item_id", "target"];

const fn default_history(history: &'static str) -> HistoryNames {
    HistoryNames { history, times: TIMES, target: TARGET }
}

/// Names that are known without a layout.
pub(crate) const DEFAULT_NAMES: ColumnNames = ColumnNames {
    user: &["user_id", "user", "uid"],
    histories: &[
        default_history("history"),
        default_history("items"),
        default_history("item_ids"),
        default_history("history_item_id"),
        default_history("item_id_list"),
        // Read where there are no ids.
        HistoryNames { history: "history_item_sid", times: TIMES, target: &["item_sid"] },
    ],
    item: &["item_id", "item", "iid"],
    time: &["timestamp", "time"],
    is_strict: true,
};

/// Columns of a row for each thing that a user did.
const fn events(
    user: &'static [&'static str],
    item: &'static [&'static str],
    time: &'static [&'static str],
) -> ColumnNames {
    ColumnNames { user, histories: &[], item, time, is_strict: false }
}

impl Layout {
    /// Every layout, by name as the documentation lists them.
    pub const ALL: &'static [Self] = &[
        Self {
            name: "movielens",
            about: "MovieLens: `ratings.csv`, `ratings.dat` (1M, 10M), `u.data` (100K)",
            files: &[
                LayoutFile {
                    endings: &["csv"],
                    format: HistoryFormat::Csv,
                    header: &["userId", "movieId", "rating", "timestamp"],
                },
                LayoutFile {
                    endings: &["dat"],
                    format: HistoryFormat::Colons,
                    header: &["userId", "movieId", "rating", "timestamp"],
                },
                LayoutFile {
                    endings: &["data", "base", "test", "tsv"],
                    format: HistoryFormat::Tsv,
                    header: &["userId", "movieId", "rating", "timestamp"],
                },
            ],
            columns: events(&["userId"], &["movieId"], &["timestamp"]),
        },
        Self {
            name: "amazon2018",
            about: "Amazon Reviews 2018 and 2014: reviews, 5-core (`.json.gz`, an object a line), ratings only (`.csv` without names)",
            files: &[
                file(&["json", "jsonl"], HistoryFormat::JsonLines),
                LayoutFile {
                    endings: &["csv"],
                    format: HistoryFormat::Csv,
                    header: &["asin", "reviewerID", "overall", "unixReviewTime"],
                },
            ],
            columns: events(&["reviewerID"], &["asin"], &["unixReviewTime"]),
        },
        Self {
            name: "amazon2023",
            about: "Amazon Reviews 2023: reviews (`.jsonl.gz`), benchmark files (`.csv`) with `history` or without",
            files: &[
                file(&["jsonl", "json"], HistoryFormat::JsonLines),
                LayoutFile {
                    endings: &["csv"],
                    format: HistoryFormat::Csv,
                    header: &["user_id", "parent_asin", "rating", "timestamp"],
                },
            ],
            columns: ColumnNames {
                user: &["user_id"],
                histories: &[HistoryNames {
                    history: "history",
                    times: &[],
                    target: &["parent_asin"],
                }],
                item: &["parent_asin", "asin"],
                time: &["timestamp", "sort_timestamp"],
                is_strict: false,
            },
        },
        Self {
            name: "kuairand",
            about: "KuaiRand: `log_standard_*.csv`, `log_random_*.csv`",
            files: &[file(&["csv"], HistoryFormat::Csv)],
            columns: events(&["user_id"], &["video_id"], &["time_ms"]),
        },
        Self {
            name: "kuairec",
            about: "KuaiRec: `big_matrix.csv`, `small_matrix.csv`",
            files: &[file(&["csv"], HistoryFormat::Csv)],
            columns: events(&["user_id"], &["video_id"], &["timestamp", "time"]),
        },
        Self {
            name: "yelp",
            about: "Yelp Open Dataset: `yelp_academic_dataset_review.json`, `…_tip.json` (an object a line)",
            files: &[
                file(&["json", "jsonl"], HistoryFormat::JsonLines),
                file(&["csv"], HistoryFormat::Csv),
            ],
            columns: events(&["user_id"], &["business_id"], &["date"]),
        },
        Self {
            name: "steam",
            about: "Steam: `steam_reviews.json.gz`, `australian_users_items.json.gz`, `australian_user_reviews.json.gz` (a dict of Python a line), `recommendations.csv`, `steam-200k.csv`",
            files: &[
                file(&["json", "jsonl"], HistoryFormat::Python),
                LayoutFile {
                    endings: &["csv"],
                    format: HistoryFormat::Csv,
                    header: &["user_id", "product_id", "behavior", "value", "zero"],
                },
            ],
            columns: ColumnNames {
                user: &["username", "user_id"],
                histories: &[history("items.item_id"), history("reviews.item_id")],
                item: &["product_id", "app_id", "item_id"],
                time: &["date"],
                is_strict: false,
            },
        },
        Self {
            name: "otto",
            about: "OTTO: `otto-recsys-*.jsonl`, sessions of events; tables of `session`, `aid`, `ts`, `type`",
            files: &[
                file(&["jsonl", "json"], HistoryFormat::JsonLines),
                file(&["csv"], HistoryFormat::Csv),
            ],
            columns: ColumnNames {
                user: &["session"],
                histories: &[HistoryNames {
                    history: "events.aid",
                    times: &["events.ts"],
                    target: &[],
                }],
                item: &["aid"],
                time: &["ts"],
                is_strict: false,
            },
        },
        Self {
            name: "retailrocket",
            about: "RetailRocket: `events.csv`",
            files: &[file(&["csv"], HistoryFormat::Csv)],
            columns: events(&["visitorid"], &["itemid"], &["timestamp"]),
        },
        Self {
            name: "hm",
            about: "H&M: `transactions_train.csv`",
            files: &[file(&["csv"], HistoryFormat::Csv)],
            columns: events(&["customer_id"], &["article_id"], &["t_dat"]),
        },
        Self {
            name: "recbole",
            about: "RecBole: atomic files `.inter`, of users or sessions",
            files: &[
                file(&["inter", "tsv", "txt"], HistoryFormat::Inter),
                file(&["csv"], HistoryFormat::Csv),
            ],
            columns: ColumnNames {
                user: &["user_id", "session_id"],
                histories: &[
                    HistoryNames {
                        history: "item_id_list",
                        times: &["timestamp_list"],
                        target: &["item_id"],
                    },
                    HistoryNames {
                        history: "business_id_list",
                        times: &["date_list"],
                        target: &["business_id"],
                    },
                ],
                item: &[
                    "item_id",
                    "business_id",
                    "product_id",
                    "venue_id",
                    "artist_id",
                    "tracks_id",
                ],
                time: &["timestamp", "date", "time"],
                is_strict: false,
            },
        },
        Self {
            name: "rechorus",
            about: "ReChorus: `train.csv`, `dev.csv`, `test.csv` (tabs, in spite of their name)",
            files: &[file(&["csv", "tsv", "txt"], HistoryFormat::Tsv)],
            columns: events(&["user_id"], &["item_id"], &["time"]),
        },
        Self {
            name: "merlin",
            about: "NVIDIA Merlin, Transformers4Rec: sessions grouped by NVTabular (`.parquet`), or their events",
            files: &[
                file(&["csv"], HistoryFormat::Csv),
                file(&["jsonl", "json"], HistoryFormat::JsonLines),
            ],
            columns: ColumnNames {
                user: &["session_id", "user_session", "user_id"],
                histories: &[
                    HistoryNames {
                        history: "item_id-list",
                        times: &["timestamp-list", "event_time_ts-list"],
                        target: &[],
                    },
                    history("item_id-list_seq"),
                    history("item_id-list_trim"),
                    HistoryNames {
                        history: "product_id-list",
                        times: &["event_time_ts-list"],
                        target: &[],
                    },
                    history("product_id-list_seq"),
                    history("sess_pid_seq"),
                ],
                item: &["item_id", "product_id"],
                time: &["timestamp", "event_time_ts", "event_time"],
                is_strict: false,
            },
        },
        Self {
            name: "grid",
            about: "GRID (Snap): folders of `.tfrecord.gz` with `user_id` and `sequence_data`",
            files: &[
                file(&["tfrecord", "tfrecords"], HistoryFormat::TfRecord),
                file(&["jsonl", "json"], HistoryFormat::JsonLines),
                file(&["csv"], HistoryFormat::Csv),
            ],
            columns: ColumnNames {
                user: &["user_id"],
                histories: &[history("sequence_data")],
                item: &[],
                time: &[],
                is_strict: false,
            },
        },
        Self {
            name: "gorse",
            about: "Gorse: exported feedback (`.csv`), feedback of its API (`.json`, `.jsonl`)",
            files: &[
                LayoutFile {
                    endings: &["csv"],
                    format: HistoryFormat::Csv,
                    header: &["feedback_type", "user_id", "item_id", "time_stamp"],
                },
                file(&["json"], HistoryFormat::Json),
                file(&["jsonl"], HistoryFormat::JsonLines),
            ],
            columns: events(
                &["user_id", "UserId"],
                &["item_id", "ItemId"],
                &["time_stamp", "timestamp", "Timestamp"],
            ),
        },
        Self {
            name: "minionerec",
            about: "MiniOneRec: `*.train.csv`, `*.valid.csv`, `*.test.csv`, `*.inter`, `*.inter.json`",
            files: &[
                file(&["csv"], HistoryFormat::Csv),
                file(&["inter"], HistoryFormat::Inter),
                file(&["json"], HistoryFormat::Json),
            ],
            columns: ColumnNames {
                user: &["user_id", "user"],
                histories: &[
                    HistoryNames { history: "history_item_id", times: &[], target: &["item_id"] },
                    HistoryNames { history: "history_item_sid", times: &[], target: &["item_sid"] },
                    HistoryNames { history: "item_id_list", times: &[], target: &["item_id"] },
                    history("items"),
                ],
                item: &["item_id"],
                time: &["timestamp"],
                is_strict: false,
            },
        },
        Self {
            name: "taste",
            about: "TASTE (OpenMatch): `train.txt`, `valid.txt`, `test.txt`: a user, items up to the first 0, the item that came next",
            files: &[file(&["txt", "tsv"], HistoryFormat::Padded)],
            columns: ColumnNames {
                user: &["user_id"],
                histories: &[HistoryNames { history: "seq", times: &[], target: &["target"] }],
                item: &[],
                time: &[],
                is_strict: false,
            },
        },
    ];

    /// The names of all.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().map(|layout| layout.name)
    }

    /// The layout's files that end as this one, or otherwise its first.
    ///
    /// A layout of tables has none for `.parquet`: those are told before.
    pub(crate) fn file(&self, path: &Path) -> &'static LayoutFile {
        let ending = ending(path);
        let is_named = |file: &&LayoutFile| {
            ending.as_deref().is_some_and(|ending| file.endings.contains(&ending))
        };
        self.files.iter().find(is_named).unwrap_or(&self.files[0])
    }

    /// The names of columns that a file of this format has where its first line names none.
    pub(crate) fn header(&self, format: HistoryFormat) -> &'static [&'static str] {
        let file = self.files.iter().find(|file| file.format == format);
        file.map_or(&[], |file| file.header)
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl FromStr for &'static Layout {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Layout::ALL.iter().find(|layout| layout.name == name).ok_or_else(|| {
            let names: Vec<&str> = Layout::names().collect();
            format!(
                "{name:?} is no layout that is known; use one of {}, or name the columns",
                names.join(", ")
            )
        })
    }
}
