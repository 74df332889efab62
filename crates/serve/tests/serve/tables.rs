//! Catalogs made of Parquet and Arrow.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float32Array, RecordBatch, StringArray, UInt16Array};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use axum::body::Body;
use axum::http::{Method, StatusCode};
use parquet::arrow::ArrowWriter;
use serde_json::json;

use crate::catalogs::{names, with_data};
use crate::shop::{Answered, Shopping};

const PARQUET: &str = "application/vnd.apache.parquet";
const ARROW_FILE: &str = "application/vnd.apache.arrow.file";
const ARROW_STREAM: &str = "application/vnd.apache.arrow.stream";

async fn put(shop: &Shopping, path: &str, media_type: &str, body: Vec<u8>) -> Answered {
    let headers = [("content-type", media_type)];
    shop.send_with(Method::PUT, path, &headers, Body::from(body)).await
}

fn batch(ids: &[&str]) -> RecordBatch {
    let codes = |level: u16| -> ArrayRef {
        Arc::new(UInt16Array::from_iter_values((0..ids.len() as u16).map(|n| n * level)))
    };
    let columns: [(&str, ArrayRef); 4] = [
        ("item_id", Arc::new(StringArray::from(ids.to_vec()))),
        ("code_0", codes(1)),
        ("code_1", codes(2)),
        (
            "price",
            Arc::new(Float32Array::from_iter((0..ids.len()).map(|n| (n > 0).then_some(19.99)))),
        ),
    ];
    assert_eq!(columns[0].1.len(), ids.len());
    RecordBatch::try_from_iter(columns).unwrap()
}

fn files(batch: &RecordBatch) -> [(&'static str, Vec<u8>); 3] {
    let schema = batch.schema();
    let mut parquet = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    parquet.write(batch).unwrap();
    let mut file = FileWriter::try_new(Vec::new(), &schema).unwrap();
    file.write(batch).unwrap();
    file.finish().unwrap();
    let mut stream = StreamWriter::try_new(Vec::new(), &schema).unwrap();
    stream.write(batch).unwrap();
    stream.finish().unwrap();
    [
        (PARQUET, parquet.into_inner().unwrap()),
        (ARROW_FILE, file.into_inner().unwrap()),
        (ARROW_STREAM, stream.into_inner().unwrap()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_the_catalog_of_its_rows() {
    let (shop, data) = with_data();
    let lines = "{\"item_id\": \"a\", \"codes\": [0, 0]}\n{\"item_id\": \"b\", \"codes\": [1, 2], \"price\": 19.99}\n";
    let made = put(&shop, "/v1/catalogs/lines", "application/x-ndjson", lines.into()).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    let query = json!({"count": true});
    let wanted = shop.post("/v1/catalogs/lines/items/query", &query).await.ok();
    assert_eq!(wanted["count"], 2);
    for (n, (media_type, body)) in files(&batch(&["a", "b"])).into_iter().enumerate() {
        let path = format!("/v1/catalogs/t{n}");
        let made = put(&shop, &path, media_type, body.clone()).await;
        assert_eq!(made.status, StatusCode::CREATED, "{media_type}: {}", made.body);
        let page = shop.post(&format!("{path}/items/query"), &query).await.ok();
        assert_eq!(page["items"], wanted["items"], "{media_type}");
        // Damage, another format, an end that is missing.
        let cut = body[..body.len() / 2].to_vec();
        for (of, wrong) in [(media_type, cut), (media_type, b"no table".to_vec())] {
            let (detail, _) = put(&shop, "/v1/catalogs/x", of, wrong).await.problem(422);
            assert!(detail.starts_with("the body"), "{media_type}: {detail}");
        }
        let other = if media_type == PARQUET { ARROW_FILE } else { PARQUET };
        put(&shop, "/v1/catalogs/x", other, body).await.problem(422);
    }
    for (media_type, body) in files(&batch(&["a", "b", "a"])) {
        let (detail, place) = put(&shop, "/v1/catalogs/x", media_type, body).await.problem(422);
        assert!(detail.contains("\"a\""), "{detail}");
        assert_eq!(place, "/3", "{media_type}");
    }
    assert_eq!(names(&data), ["lines", "t0", "t1", "t2"]);
}
