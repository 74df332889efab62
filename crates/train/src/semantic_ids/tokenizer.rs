//! Tokenizers of items, which give them their semantic IDs.

use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

use super::nearest::squared_distance;
use super::perceptron::Perceptron;
use super::quality::{Quality, variance};
use super::residual_k_means::{KMeansOptions, ResidualKMeans, quantise};
use super::rq_vae::{RqVae, RqVaeOptions, Scaling};
use super::{Embeddings, MAX_CODES, MAX_LEVELS};
use crate::error::{TrainError, TrainErrorKind};

/// Method of learning codebooks.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// Residual k-means.
    KMeans(KMeansOptions),
    /// Together with an encoder.
    RqVae(RqVaeOptions),
}

/// Progress of fitting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitProgress {
    /// Levels or epochs done.
    pub done: usize,
    /// Number of levels or epochs to do.
    pub of: usize,
    /// The mean loss of the epoch, where there is one.
    pub loss: Option<f64>,
}

/// Codebooks, and an encoder where they have one.
#[derive(Clone, Debug, PartialEq)]
pub struct Tokenizer {
    kind: Kind,
    codes: usize,
    normalized: bool,
}

/// Items with their codes.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    /// `[N, L]`
    pub codes: Vec<u32>,
    /// Quality of the IDs.
    pub quality: Quality,
    /// Residual of each item before its last code, `[N, width]`.
    left: Vec<f32>,
    /// The last codebook, `[K, width]`.
    last: Vec<f32>,
    width: usize,
}

impl Encoded {
    /// Squared distance that `code` would leave as the last code of `item`.
    ///
    /// # Panics
    /// When there is no such item or code.
    pub fn misfit(&self, item: usize, code: u32) -> f32 {
        let (left, entry) = (item * self.width, code as usize * self.width);
        squared_distance(&self.left[left..][..self.width], &self.last[entry..][..self.width])
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    KMeans(ResidualKMeans),
    RqVae(RqVae),
}

/// Description of the tensors in a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    version: u32,
    method: String,
    levels: usize,
    codes: usize,
    normalized: bool,
    /// Widths of the encoder; of an embedding alone where there is none.
    widths: Vec<usize>,
}

const VERSION: u32 = 1;
/// The key of the header in the file's metadata.
const HEADER: &str = "palmette-tokenizer";

impl Tokenizer {
    /// Learns `levels` codebooks of `codes` entries. `normalized` scales embeddings to length 1
    /// first, here and in [`encode`](Self::encode).
    ///
    /// # Errors
    /// When a size is 0 or above its limit ([`MAX_LEVELS`], [`MAX_CODES`]), or training diverges.
    pub fn fit(
        embeddings: &Embeddings,
        levels: usize,
        codes: usize,
        normalized: bool,
        method: &Method,
        seed: u64,
        progress: &mut dyn FnMut(FitProgress),
    ) -> Result<Self, TrainError> {
        check("levels", levels, MAX_LEVELS)?;
        check("codes", codes, MAX_CODES)?;
        let scaled = normalized.then(|| embeddings.clone().normalized());
        let embeddings = scaled.as_ref().unwrap_or(embeddings);
        let (rows, width) = (embeddings.values(), embeddings.width());
        let kind = match method {
            Method::KMeans(options) => {
                check("rounds", options.rounds, usize::MAX)?;
                check("max_items", options.max_items, usize::MAX)?;
                let mut done = |done| progress(FitProgress { done, of: levels, loss: None });
                let options = *options;
                Kind::KMeans(ResidualKMeans::fit(
                    rows, width, levels, codes, options, seed, &mut done,
                ))
            }
            Method::RqVae(options) => {
                check("latent", options.latent, 1 << 16)?;
                check("batch_size", options.batch_size, 1 << 20)?;
                for &hidden in &options.hidden {
                    check("hidden", hidden, 1 << 16)?;
                }
                let of = options.epochs(rows.len() / width);
                let mut done = |done, loss| progress(FitProgress { done, of, loss: Some(loss) });
                Kind::RqVae(RqVae::fit(rows, width, levels, codes, options, seed, &mut done)?)
            }
        };
        Ok(Self { kind, codes, normalized })
    }

    /// Levels of an ID (L).
    pub fn levels(&self) -> usize {
        self.codebooks().len()
    }

    /// Codes of a level (K).
    pub fn codes(&self) -> usize {
        self.codes
    }

    /// Numbers in an embedding (D).
    pub fn width(&self) -> usize {
        match &self.kind {
            Kind::KMeans(fitted) => fitted.width(),
            Kind::RqVae(fitted) => fitted.width(),
        }
    }

    fn codebooks(&self) -> &[Vec<f32>] {
        match &self.kind {
            Kind::KMeans(fitted) => fitted.codebooks(),
            Kind::RqVae(fitted) => fitted.codebooks(),
        }
    }

    /// The codes of each item, how good they are, and how badly other last codes would fit.
    ///
    /// # Errors
    /// When the embeddings are of another width than those that the tokenizer was fitted to.
    pub fn encode(&self, embeddings: &Embeddings) -> Result<Encoded, TrainError> {
        let (found, wanted) = (embeddings.width(), self.width());
        if found != wanted {
            return Err(TrainErrorKind::OtherWidth { found, wanted }.into());
        }
        let scaled = self.normalized.then(|| embeddings.clone().normalized());
        let rows = scaled.as_ref().unwrap_or(embeddings).values();
        let num_rows = rows.len() / found;
        let levels = self.levels();
        let (codes, errors, space, width) = match &self.kind {
            Kind::KMeans(fitted) => {
                let (codes, errors) = fitted.encode(rows);
                let mean = |level: usize| {
                    let of_level = errors.iter().skip(level).step_by(levels);
                    of_level.copied().map(f64::from).sum::<f64>() / num_rows as f64
                };
                let means = (0..levels).map(mean).collect::<Vec<_>>();
                (codes, means, rows.to_vec(), found)
            }
            Kind::RqVae(fitted) => {
                let latents = fitted.latents(rows);
                let (codes, _) = quantise(&latents, fitted.latent(), fitted.codebooks());
                let mean = |level: usize| {
                    let made = fitted.decode(&codes, level + 1);
                    let squares = made.iter().zip(rows).map(|(a, b)| f64::from(a - b).powi(2));
                    squares.sum::<f64>() / num_rows as f64
                };
                let means = (0..levels).map(mean).collect::<Vec<_>>();
                (codes, means, latents, fitted.latent())
            }
        };
        let quality = Quality::of(&codes, self.codes, &errors, variance(rows, found));
        // What is left before the last level, which its codes compete for.
        let mut left = space;
        for (row, codes) in left.chunks_mut(width).zip(codes.chunks(levels)) {
            for (codebook, &code) in self.codebooks().iter().zip(&codes[..levels - 1]) {
                let entry = &codebook[code as usize * width..][..width];
                row.iter_mut().zip(entry).for_each(|(value, entry)| *value -= entry);
            }
        }
        let last = self.codebooks().last().cloned().unwrap_or_default();
        Ok(Encoded { codes, quality, left, last, width })
    }

    /// Writes the tokenizer as a safetensors file: codebooks `codebook.N` `[K, D]`, and where there
    /// is an encoder its and the decoder's layers.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), TrainError> {
        let mut tensors: Vec<(String, Vec<usize>, Vec<f32>)> = Vec::new();
        for (level, codebook) in self.codebooks().iter().enumerate() {
            let shape = vec![self.codes, codebook.len() / self.codes];
            tensors.push((format!("codebook.{level}"), shape, codebook.clone()));
        }
        let (method, widths) = match &self.kind {
            Kind::KMeans(fitted) => ("k-means", vec![fitted.width()]),
            Kind::RqVae(model) => {
                let Scaling { mean, deviation } = &model.scaling;
                tensors.push(("mean".to_owned(), vec![mean.len()], mean.clone()));
                tensors.push(("deviation".to_owned(), vec![1], vec![*deviation]));
                let (encoder, decoder) = model.weights.split_at(model.encoder.num_weights());
                for (name, shape, weights) in
                    [("encoder", &model.encoder, encoder), ("decoder", &model.decoder, decoder)]
                {
                    for layer in 0..shape.num_layers() {
                        let (w, b) = shape.ranges(layer);
                        let (inputs, outputs) = (shape.widths()[layer], shape.widths()[layer + 1]);
                        let name = |what: &str| format!("{name}.{layer}.{what}");
                        let (w, b) = (weights[w].to_vec(), weights[b].to_vec());
                        tensors.push((name("weight"), vec![outputs, inputs], w));
                        tensors.push((name("bias"), vec![outputs], b));
                    }
                }
                ("rq-vae", model.encoder.widths().to_vec())
            }
        };
        let header = Header {
            version: VERSION,
            method: method.to_owned(),
            levels: self.levels(),
            codes: self.codes,
            normalized: self.normalized,
            widths,
        };
        let header = serde_json::to_string(&header)
            .map_err(|error| TrainError::file(path, format!("cannot be written: {error}")))?;
        let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
            .into_iter()
            .map(|(name, shape, values)| {
                (name, shape, values.into_iter().flat_map(f32::to_le_bytes).collect())
            })
            .collect();
        let views = bytes.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
            view.map(|view| (name.as_str(), view))
        });
        let views = views.collect::<Result<Vec<_>, _>>();
        let metadata = HashMap::from([(HEADER.to_owned(), header)]);
        let file = views
            .and_then(|views| safetensors::serialize(views, Some(metadata)))
            .map_err(|error| TrainError::file(path, format!("cannot be written: {error}")))?;
        crate::tensor_file::replace_bytes(path, &file)
    }

    /// Reads what [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// When the file cannot be read or is not such a file.
    pub fn load(path: &Path) -> Result<Self, TrainError> {
        let bytes = std::fs::read(path).map_err(|error| TrainError::io(path, error))?;
        let bad = |reason: String| TrainError::file(path, reason);
        let (_, metadata) = SafeTensors::read_metadata(&bytes)
            .map_err(|error| bad(format!("is not a safetensors file: {error}")))?;
        let header = metadata.metadata().as_ref().and_then(|texts| texts.get(HEADER));
        let header = header.ok_or_else(|| {
            bad("is no tokenizer: its metadata lack `palmette-tokenizer`".to_owned())
        })?;
        let header: Header = serde_json::from_str(header)
            .map_err(|error| bad(format!("its header cannot be read: {error}")))?;
        if header.version != VERSION {
            let found = header.version;
            return Err(bad(format!(
                "is of version {found}; this program reads version {VERSION}"
            )));
        }
        check("levels", header.levels, MAX_LEVELS)?;
        check("codes", header.codes, MAX_CODES)?;
        check("widths", header.widths.len(), 64)?;
        for &width in &header.widths {
            check("widths", width, 1 << 24)?;
        }
        let file = SafeTensors::deserialize(&bytes)
            .map_err(|error| bad(format!("is not a safetensors file: {error}")))?;
        let tensor = |name: String, shape: &[usize]| -> Result<Vec<f32>, TrainError> {
            let view = file.tensor(&name).map_err(|_| bad(format!("lacks the tensor {name:?}")))?;
            if view.dtype() != Dtype::F32 || view.shape() != shape {
                let (dtype, found) = (view.dtype(), view.shape());
                let reason = format!("tensor {name:?} is {dtype:?} {found:?}, not F32 {shape:?}");
                return Err(bad(reason));
            }
            let values = view.data().as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b));
            let values: Vec<f32> = values.collect();
            match values.iter().all(|value| value.is_finite()) {
                true => Ok(values),
                false => Err(bad(format!("tensor {name:?} has a number that is not finite"))),
            }
        };
        let Header { levels, codes, normalized, widths, .. } = header;
        let (width, space) = (widths[0], widths[widths.len() - 1]);
        let codebooks = (0..levels)
            .map(|level| tensor(format!("codebook.{level}"), &[codes, space]))
            .collect::<Result<Vec<_>, _>>()?;
        let kind = match header.method.as_str() {
            "k-means" => Kind::KMeans(ResidualKMeans::from_codebooks(width, codebooks)),
            "rq-vae" => {
                let encoder = Perceptron::new(widths.clone());
                let decoder = Perceptron::new(widths.into_iter().rev().collect());
                let mut weights = Vec::new();
                for (name, shape) in [("encoder", &encoder), ("decoder", &decoder)] {
                    for layer in 0..shape.num_layers() {
                        let (inputs, outputs) = (shape.widths()[layer], shape.widths()[layer + 1]);
                        let name = |what: &str| format!("{name}.{layer}.{what}");
                        weights.extend(tensor(name("weight"), &[outputs, inputs])?);
                        weights.extend(tensor(name("bias"), &[outputs])?);
                    }
                }
                let mean = tensor("mean".to_owned(), &[width])?;
                let deviation = tensor("deviation".to_owned(), &[1])?[0];
                if deviation <= 0.0 {
                    return Err(bad(format!("its deviation is {deviation}; it must be above 0")));
                }
                let scaling = Scaling { mean, deviation };
                Kind::RqVae(RqVae { scaling, encoder, decoder, weights, codebooks })
            }
            other => {
                let reason =
                    format!("its method is {other:?}; it must be \"k-means\" or \"rq-vae\"");
                return Err(bad(reason));
            }
        };
        Ok(Self { kind, codes, normalized })
    }
}

fn check(what: &'static str, value: usize, most: usize) -> Result<(), TrainError> {
    match (1..=most).contains(&value) {
        true => Ok(()),
        false => Err(TrainErrorKind::Size { what, value, most }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::testing::floats;

    fn embeddings() -> Embeddings {
        let items = (0..60).map(|item| format!("item {item}")).collect();
        Embeddings::new(items, 8, floats(480, 1)).unwrap()
    }

    fn methods() -> [Method; 2] {
        let options = RqVaeOptions {
            hidden: vec![16],
            latent: 4,
            steps: 10,
            batch_size: 32,
            ..RqVaeOptions::default()
        };
        [Method::KMeans(KMeansOptions::default()), Method::RqVae(options)]
    }

    #[test]
    fn a_saved_tokenizer_gives_the_same_codes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.safetensors");
        for method in methods() {
            for normalized in [false, true] {
                let fitted =
                    Tokenizer::fit(&embeddings(), 3, 8, normalized, &method, 5, &mut |_| ());
                let fitted = fitted.unwrap();
                fitted.save(&path).unwrap();
                let loaded = Tokenizer::load(&path).unwrap();
                assert_eq!(loaded, fitted);
                let found = fitted.encode(&embeddings()).unwrap();
                assert_eq!(loaded.encode(&embeddings()).unwrap(), found);
                assert_eq!((found.quality.items, found.quality.levels.len()), (60, 3));
                // The last code is the one that fits best.
                for (item, codes) in found.codes.chunks(3).enumerate() {
                    let own = found.misfit(item, codes[2]);
                    assert!((0..8).all(|code| found.misfit(item, code) >= own - 1e-4));
                }
            }
        }
    }

    #[test]
    fn damaged_files_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.safetensors");
        for method in methods() {
            let fitted = Tokenizer::fit(&embeddings(), 2, 4, false, &method, 5, &mut |_| ());
            fitted.unwrap().save(&path).unwrap();
            let whole = std::fs::read(&path).unwrap();
            for length in (0..whole.len()).step_by(17) {
                std::fs::write(&path, &whole[..length]).unwrap();
                assert!(Tokenizer::load(&path).is_err(), "cut to {length}");
            }
            for at in 0..whole.len().min(900) {
                let mut changed = whole.clone();
                changed[at] ^= 1 << (at % 8);
                std::fs::write(&path, &changed).unwrap();
                if let Ok(loaded) = Tokenizer::load(&path) {
                    let _ = loaded.encode(&embeddings());
                }
            }
        }
    }

    #[test]
    fn wrong_sizes_are_named() {
        let fit = |levels, codes| {
            let method = &methods()[0];
            Tokenizer::fit(&embeddings(), levels, codes, false, method, 0, &mut |_| ())
        };
        assert!(fit(0, 8).unwrap_err().to_string().contains("levels"));
        assert!(fit(2, MAX_CODES + 1).unwrap_err().to_string().contains("65537"));
        let other = Embeddings::new(vec!["a".to_owned()], 3, vec![0.0; 3]).unwrap();
        let fitted = fit(2, 4).unwrap();
        let error = fitted.encode(&other).unwrap_err().to_string();
        assert!(error.contains('3') && error.contains('8'), "{error}");
    }
}
