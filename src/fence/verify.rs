//! Whether an object can be fenced at all: what [`Tagged`] asks of a store, tried out.

use super::object::{Found, Put, Tagged};
use super::write_id::WriteId;
use crate::time::{Clock, SystemClock};
use crate::types::FencingToken;

/// Tries out whether an object's store and its two operations keep to what [`Tagged`] asks for: on the emulator or the
/// compatible store that your tests use, and once on the real one. Feature `conformance`.
///
/// It writes the object, a few times, so take one that nothing is in. The best begins with none, so that the creation is
/// tried as well.
///
/// It sees a store that ignores conditions, and a tag that does not cover the fence. It does not see one that checks
/// the condition and then writes in two steps; for that, race writers.
///
/// # Errors
/// What is wrong, in a sentence.
pub async fn verify<O: Tagged>(object: &O, new: &O::New) -> Result<(), String> {
    let token = FencingToken::of_checked(1);
    let session = SystemClock.random();
    let ids: [WriteId; 6] = std::array::from_fn(|number| WriteId::new(token, session, number as u64));

    let first = read(object).await?;
    written(object, &first, &ids[0], None).await?;
    refused(object, &first, &ids[1], None, "the tag of a write before").await?;
    let second = shows(object, &ids[0]).await?;

    written(object, &second, &ids[2], Some(new)).await?;
    refused(object, &second, &ids[3], Some(new), "the tag of a write before").await?;
    let third = shows(object, &ids[2]).await?;

    // Nothing but the fence changes.
    written(object, &third, &ids[4], None).await?;
    refused(object, &third, &ids[5], Some(new), "a tag from before the fence was changed").await?;
    shows(object, &ids[4]).await?;

    let absent = Found { tag: None, fence: None, seen: third.seen };
    refused(object, &absent, &ids[5], None, "no tag, though there is an object,").await?;
    shows(object, &ids[4]).await.map(|_| ())
}

async fn read<O: Tagged>(object: &O) -> Result<Found<O::Tag, O::Seen>, String> {
    object.read().await.map_err(|error| format!("the object could not be read: {error}"))
}

async fn written<O: Tagged>(
    object: &O,
    over: &Found<O::Tag, O::Seen>,
    id: &WriteId,
    new: Option<&O::New>,
) -> Result<(), String> {
    match object.write(over, &id.to_string(), new).await {
        Ok(Put::Written(tag)) if over.tag.as_ref() == Some(&tag) => {
            Err("a write that changes the fence leaves the tag as it was: store the fence in what the tag covers"
                .into())
        }
        Ok(Put::Written(_)) => Ok(()),
        Ok(Put::Moved) => Err("a write over the newest tag was refused, though nobody else writes".into()),
        Err(error) => Err(format!("the object could not be written: {error}")),
    }
}

async fn refused<O: Tagged>(
    object: &O,
    over: &Found<O::Tag, O::Seen>,
    id: &WriteId,
    new: Option<&O::New>,
    what: &str,
) -> Result<(), String> {
    match object.write(over, &id.to_string(), new).await {
        Ok(Put::Moved) => Ok(()),
        Ok(Put::Written(_)) => Err(format!("a write on condition of {what} was stored: the condition is not enforced")),
        Err(error) => Err(format!("a write on condition of {what} has to be `Moved` and was an error: {error}")),
    }
}

async fn shows<O: Tagged>(object: &O, id: &WriteId) -> Result<Found<O::Tag, O::Seen>, String> {
    let found = read(object).await?;
    match &found.fence {
        Some(fence) if *fence == id.to_string() => Ok(found),
        other => Err(format!("the fence {id} was written, and {other:?} is read")),
    }
}
