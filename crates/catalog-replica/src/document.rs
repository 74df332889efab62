//! Documents of JSON with a checksum: `{"checksum": …, "document": …}`, the CRC-32 of the document
//! as this program writes it.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ChecksummedDocument<T> {
    checksum: u32,
    document: T,
}

pub(crate) fn write(document: &impl Serialize) -> Bytes {
    let checksum = checksum(document);
    serde_json::to_vec_pretty(&ChecksummedDocument { checksum, document })
        .expect("it is plain data")
        .into()
}

/// Reads a document; says what is wrong where it is none.
pub(crate) fn read<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let ChecksummedDocument::<T> { checksum: said, document } =
        serde_json::from_slice(bytes).map_err(|error| format!("it cannot be read: {error}"))?;
    match checksum(&document) == said {
        true => Ok(document),
        false => Err("it does not have the checksum that it says".to_owned()),
    }
}

fn checksum(document: &impl Serialize) -> u32 {
    crc32fast::hash(&serde_json::to_vec(document).expect("it is plain data"))
}
