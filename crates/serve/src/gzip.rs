//! Bodies compressed by gzip: those of requests are inflated as they are read, those of answers
//! deflated as they are written.

use std::io::{self, Write};

use axum::body::{Body, BodyDataStream};
use axum::extract::Request;
use axum::http::header::Entry;
use axum::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_MATCH,
    IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::{GzEncoder, MultiGzDecoder};
use futures_util::stream::{self, StreamExt};
use hyper::body::{Body as _, Bytes};

use crate::problem::{Kind, Problem};

/// Bytes that are inflated at once, of which a thousand times as many may come: readers of the body
/// count them before the next.
const INFLATED_AT_ONCE: usize = 1024;
/// Bytes that are deflated at once.
const DEFLATED_AT_ONCE: usize = 64 << 10;
/// Bytes of an answer that are worth it.
const LEAST_ANSWER: u64 = 1024;

/// Hands a request on with its body as it was before it was compressed; limits hold for that.
pub(crate) async fn requests(mut request: Request, next: Next) -> Response {
    let encodings: Vec<String> =
        request.headers().get_all(CONTENT_ENCODING).iter().map(text).collect();
    let encodings = encodings.join(",").to_ascii_lowercase();
    match encodings.trim() {
        "" | "identity" => {}
        "gzip" | "x-gzip" => {
            request.headers_mut().remove(CONTENT_ENCODING);
            request.headers_mut().remove(CONTENT_LENGTH);
            request = request.map(inflated);
        }
        other => {
            let detail =
                format!("the body is encoded as {other:?}; gzip is read here, or a body as it is");
            let mut response = Problem::new(Kind::UnsupportedMedia, detail).into_response();
            response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
            return response;
        }
    }
    next.run(request).await
}

/// End of the tag of an answer that is compressed, before its closing quote.
const GZIP_TAG: &str = "-gzip\"";

/// Compresses the answer, where the client takes that and it is long.
///
/// The tag of a compressed answer is another than that of the answer as it is, since both are
/// strong and their bytes are not the same. Conditions of requests name either, and handlers see
/// the latter alone.
pub(crate) async fn answers(mut request: Request, next: Next) -> Response {
    let is_taken = accepts_gzip(request.headers());
    let names_compressed = [IF_MATCH, IF_NONE_MATCH]
        .map(|name| replace_in(request.headers_mut(), &name, GZIP_TAG, "\""))
        .contains(&true);
    let mut response = next.run(request).await;
    if response.status() == StatusCode::NOT_MODIFIED && names_compressed {
        replace_in(response.headers_mut(), &ETAG, "\"", GZIP_TAG);
    }
    if !is_compressible(&response) {
        return response;
    }
    response.headers_mut().append(VARY, HeaderValue::from_static("accept-encoding"));
    if !is_taken {
        return response;
    }
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response.headers_mut().remove(CONTENT_LENGTH);
    replace_in(response.headers_mut(), &ETAG, "\"", GZIP_TAG);
    response.map(deflated)
}

/// Replaces the end of each tag in a header; true where there was one.
fn replace_in(headers: &mut HeaderMap, name: &HeaderName, end: &str, by: &str) -> bool {
    let mut has_any = false;
    if let Entry::Occupied(mut values) = headers.entry(name) {
        for value in values.iter_mut() {
            let tags: Vec<String> = text(value)
                .split(',')
                .map(|tag| {
                    let Some(tag) = tag.trim_end().strip_suffix(end) else { return tag.to_owned() };
                    has_any = true;
                    format!("{tag}{by}")
                })
                .collect();
            if let (true, Ok(tags)) = (has_any, HeaderValue::from_str(&tags.join(","))) {
                *value = tags;
            }
        }
    }
    has_any
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// True if a client takes gzip: named, or by `*`, and not with weight zero.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let given: Vec<String> = headers.get_all(ACCEPT_ENCODING).iter().map(text).collect();
    let given = given.join(",").to_ascii_lowercase();
    let weight = |name: &str| {
        given.split(',').find_map(|entry| {
            let (coding, parameters) = entry.split_once(';').unwrap_or((entry, ""));
            let weight = parameters.trim().strip_prefix("q=").map_or("1", str::trim);
            (coding.trim() == name).then(|| weight.parse::<f32>().unwrap_or(0.0))
        })
    };
    weight("gzip").or_else(|| weight("*")).is_some_and(|weight| weight > 0.0)
}

/// True if an answer is worth compressing: text, whole, and not compressed already.
fn is_compressible(response: &Response) -> bool {
    let headers = response.headers();
    let of_type = headers.get(CONTENT_TYPE).map(text).unwrap_or_default();
    let essence = of_type.split(';').next().unwrap_or_default().trim();
    let is_text = essence.starts_with("text/")
        || ["json", "javascript", "xml"].iter().any(|kind| essence.ends_with(kind));
    is_text
        && !headers.contains_key(CONTENT_ENCODING)
        && !headers.contains_key(CONTENT_RANGE)
        && response.body().size_hint().exact().is_none_or(|len| len >= LEAST_ANSWER)
}

/// A body that goes through a coder.
struct Coding<C> {
    body: BodyDataStream,
    coder: C,
    /// Bytes that are not coded yet.
    left: Bytes,
    is_over: bool,
}

/// A coder of gzip, of either direction.
trait Coder: Write {
    /// Bytes that are coded at once.
    const AT_ONCE: usize;

    /// The bytes that it made since it was asked the last time.
    fn made(&mut self) -> Vec<u8>;

    /// Hands out what it holds back, where others wait for it.
    fn part(&mut self) -> io::Result<()>;

    fn end(&mut self) -> io::Result<()>;
}

impl Coder for MultiGzDecoder<Vec<u8>> {
    const AT_ONCE: usize = INFLATED_AT_ONCE;

    fn made(&mut self) -> Vec<u8> {
        std::mem::take(self.get_mut())
    }

    fn part(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.try_finish()
    }
}

impl Coder for GzEncoder<Vec<u8>> {
    const AT_ONCE: usize = DEFLATED_AT_ONCE;

    fn made(&mut self) -> Vec<u8> {
        std::mem::take(self.get_mut())
    }

    fn part(&mut self) -> io::Result<()> {
        self.flush()
    }

    fn end(&mut self) -> io::Result<()> {
        self.try_finish()
    }
}

fn inflated(body: Body) -> Body {
    coded(body, MultiGzDecoder::new(Vec::new()))
}

fn deflated(body: Body) -> Body {
    coded(body, GzEncoder::new(Vec::new(), Compression::fast()))
}

fn coded<C: Coder + Send + 'static>(body: Body, coder: C) -> Body {
    let coding =
        Coding { body: body.into_data_stream(), coder, left: Bytes::new(), is_over: false };
    Body::from_stream(stream::try_unfold(coding, next_piece))
}

/// The next piece that the coder makes; `None` at the end.
async fn next_piece<C: Coder>(mut of: Coding<C>) -> io::Result<Option<(Bytes, Coding<C>)>> {
    let unsound = |error: io::Error| io::Error::other(format!("it is no sound gzip: {error}"));
    loop {
        if of.is_over {
            return Ok(None);
        }
        if of.left.is_empty() {
            match of.body.next().await {
                Some(data) => of.left = data.map_err(io::Error::other)?,
                None => {
                    of.is_over = true;
                    of.coder.end().map_err(unsound)?;
                }
            }
        }
        let piece = of.left.split_to(of.left.len().min(C::AT_ONCE));
        of.coder.write_all(&piece).map_err(unsound)?;
        if of.left.is_empty() && !of.is_over {
            of.coder.part().map_err(unsound)?;
        }
        let made = of.coder.made();
        if !made.is_empty() {
            return Ok(Some((made.into(), of)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::MultiGzDecoder as Reader;
    use http_body_util::BodyExt;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn of_pieces(bytes: &[u8], len: usize) -> Body {
        let pieces: Vec<io::Result<Bytes>> =
            bytes.chunks(len.max(1)).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        Body::from_stream(stream::iter(pieces))
    }

    #[tokio::test]
    async fn bodies_come_back_in_any_pieces() {
        let text: Vec<u8> =
            (0..200_000_u32).flat_map(|n| (n % 977).to_string().into_bytes()).collect();
        for len in [1, 7, 1000, 1 << 20] {
            let short = &text[..text.len().min(len * 2000)];
            let read = inflated(of_pieces(&gzip(short), len)).collect().await.unwrap().to_bytes();
            assert_eq!(read, short);
            let written = deflated(of_pieces(short, len)).collect().await.unwrap().to_bytes();
            let mut back = Vec::new();
            Reader::new(&written[..]).read_to_end(&mut back).unwrap();
            assert_eq!(back, short);
        }
        // Files that follow one another are one text.
        let two = [gzip(b"one, "), gzip(b"two")].concat();
        assert_eq!(inflated(Body::from(two)).collect().await.unwrap().to_bytes(), "one, two");
    }

    #[tokio::test]
    async fn a_piece_is_written_before_the_next_comes() {
        let (sender, receiver) = tokio::sync::mpsc::channel::<io::Result<Bytes>>(1);
        let pieces = stream::unfold(receiver, |mut of| async { Some((of.recv().await?, of)) });
        let mut body = deflated(Body::from_stream(pieces));
        let mut seen = Vec::new();
        for word in ["first ", "second "] {
            sender.send(Ok(word.into())).await.unwrap();
            seen.extend(body.frame().await.unwrap().unwrap().into_data().unwrap());
            let mut text = Vec::new();
            // Its end has not come: what is there can be read all the same.
            _ = Reader::new(&seen[..]).read_to_end(&mut text);
            assert!(String::from_utf8(text).unwrap().ends_with(word));
        }
    }

    #[tokio::test]
    async fn what_is_no_gzip_is_an_error_and_pieces_are_bounded() {
        let whole = gzip(&b"x".repeat(5000));
        let mut changed = whole.clone();
        *changed.last_mut().unwrap() ^= 1;
        for wrong in [
            b"{}".to_vec(),
            whole[..whole.len() - 3].to_vec(),
            changed,
            [&whole[..], b"more"].concat(),
        ] {
            let error = inflated(Body::from(wrong)).collect().await.unwrap_err();
            assert!(error.to_string().contains("no sound gzip"), "{error}");
        }
        let large = gzip(&vec![0; 64 << 20]);
        let mut body = inflated(Body::from(large));
        let mut total = 0;
        while let Some(frame) = body.frame().await {
            let len = frame.unwrap().into_data().unwrap().len();
            assert!(len <= 2 << 20, "{len} bytes at once");
            total += len;
        }
        assert_eq!(total, 64 << 20);
    }

    #[test]
    fn clients_say_what_they_take() {
        let takes = |value: &str| {
            let headers = [(ACCEPT_ENCODING, value.parse().unwrap())].into_iter().collect();
            accepts_gzip(&headers)
        };
        for yes in ["gzip", "br, GZIP;q=0.5", "*", "deflate, *;q=0.1", "gzip; q=1, *;q=0"] {
            assert!(takes(yes), "{yes}");
        }
        for no in ["", "br", "gzip;q=0", "gzip;q=x", "*;q=0", "identity", "*, gzip;q=0.0"] {
            assert!(!takes(no), "{no}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
