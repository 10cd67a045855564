//! Requests without the credential that is asked for do not come in.

use azure_core::credentials::Secret;
use azure_core::hmac::hmac_sha256;

use crate::ground::{BLOB, Ground, refusal};
use crate::support::azure::auth::string_to_sign;
use crate::support::azure::{ACCOUNT, Auth, Request};

/// Of the emulator, known to everybody.
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

fn shared_key() -> Auth {
    Auth::SharedKey { account: ACCOUNT.to_owned(), key: KEY.to_owned() }
}

/// The request with what it has to sign written out by hand.
fn signed(request: Request, text: &str) -> Request {
    let signature = hmac_sha256(text, &Secret::new(KEY)).unwrap();
    request.with("authorization", &format!("SharedKey {ACCOUNT}:{signature}"))
}

/// The example in "Authorize with Shared Key".
#[test]
fn the_text_to_sign_is_the_documentations() {
    let request = Request {
        method: "GET".to_owned(),
        host: "myaccount.blob.core.windows.net".to_owned(),
        path: "/mycontainer".to_owned(),
        query: "restype=container&comp=metadata&timeout=20".to_owned(),
        ..Request::default()
    };
    let request = request.with("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT").with("x-ms-version", "2015-02-21");
    assert_eq!(
        string_to_sign(&request, "myaccount"),
        "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n/myaccount\
         /mycontainer\ncomp:metadata\nrestype:container\ntimeout:20"
    );
}

#[test]
fn a_write_that_is_signed_as_documented_comes_in() {
    let ground = Ground::new();
    ground.fake.require(shared_key());
    let etag = ground.etag();
    let write = ground.fake.request("PUT", "a%2Fb", "").with("x-ms-blob-type", "BlockBlob");
    let mut write = write.with("x-ms-date", "Mon, 21 Sep 2026 14:13:20 GMT").with("content-type", "text/plain");
    let write = {
        write.body = b"abc".to_vec();
        write.with("if-none-match", &etag).with("x-ms-meta-lh_token", " 1").with("date", "ignored")
    };
    // Blanks around a value are not signed; an escaped path is signed as it was sent.
    let text = format!(
        "PUT\n\n\n3\n\ntext/plain\n\n\n\n{etag}\n\n\nx-ms-blob-type:BlockBlob\nx-ms-date:Mon, 21 Sep 2026 14:13:20 GMT\n\
         x-ms-meta-lh_token:1\nx-ms-version:2026-02-06\n/{ACCOUNT}/leases/a%2Fb"
    );
    let answer = ground.fake.send(&signed(write, &text));
    // It came in, and is refused for the blank.
    assert_eq!(refusal(&answer), (400, "InvalidMetadata"));
}

#[test]
fn a_list_that_is_signed_as_documented_comes_in() {
    let ground = Ground::new();
    ground.fake.require(shared_key());
    let list = ground.fake.request("GET", "", "restype=container&comp=list&prefix=a%2Fb+c&include=metadata");
    let list = list.with("x-ms-date", "Mon, 21 Sep 2026 14:13:20 GMT");
    let text = format!(
        "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Mon, 21 Sep 2026 14:13:20 GMT\nx-ms-version:2026-02-06\n/{ACCOUNT}/leases\n\
         comp:list\ninclude:metadata\nprefix:a/b c\nrestype:container"
    );
    assert_eq!(ground.fake.send(&signed(list, &text)).status, 200);
}

#[test]
fn an_underscore_is_signed_before_digits_and_letters() {
    let request = Request::default().with("x-ms-meta-a1", "1").with("x-ms-meta-a_b", "2").with("x-ms-meta-ab", "3");
    let text = string_to_sign(&request, "account");
    assert!(text.contains("x-ms-meta-a_b:2\nx-ms-meta-a1:1\nx-ms-meta-ab:3\n"), "{text}");
}

#[test]
fn a_signature_of_something_else_does_not_come_in() {
    let ground = Ground::new();
    ground.fake.require(shared_key());
    let head = ground.fake.request("HEAD", BLOB, "").with("x-ms-date", "Mon, 21 Sep 2026 14:13:20 GMT");
    let good = signed(head.clone(), &string_to_sign(&head, ACCOUNT));
    assert_eq!(ground.fake.send(&good).status, 200);
    let changed: [Request; 4] = [
        good.clone().with("x-ms-date", "Mon, 21 Sep 2026 14:13:21 GMT"),
        good.clone().with("if-match", "*"),
        Request { method: "GET".to_owned(), ..good.clone() },
        Request { query: "timeout=1".to_owned(), ..good.clone() },
    ];
    for request in changed {
        assert_eq!(refusal(&ground.fake.send(&request)), (403, "AuthenticationFailed"), "{request:?}");
    }
    assert_eq!(refusal(&ground.fake.send(&head)), (403, "AuthenticationFailed"));
}

#[test]
fn a_signature_without_a_date_does_not_come_in() {
    let ground = Ground::new();
    ground.fake.require(shared_key());
    let head = ground.fake.request("HEAD", BLOB, "");
    let undated = signed(head.clone(), &string_to_sign(&head, ACCOUNT));
    assert_eq!(refusal(&ground.fake.send(&undated)), (403, "AuthenticationFailed"));
}

#[test]
fn another_key_does_not_come_in() {
    let ground = Ground::new();
    ground.fake.require(Auth::SharedKey { account: ACCOUNT.to_owned(), key: "b3RoZXI=".to_owned() });
    let head = ground.fake.request("HEAD", BLOB, "").with("x-ms-date", "Mon, 21 Sep 2026 14:13:20 GMT");
    let signed = signed(head.clone(), &string_to_sign(&head, ACCOUNT));
    assert_eq!(refusal(&ground.fake.send(&signed)), (403, "AuthenticationFailed"));
}

#[test]
fn a_shared_access_signature_has_to_be_on_every_request() {
    let ground = Ground::new();
    ground.fake.require(Auth::Sas("sv=2026-02-06&sp=rwl&sig=a%2Fb%3D".to_owned()));
    let head = |query| ground.fake.send(&ground.fake.request("HEAD", BLOB, query));
    assert_eq!(head("sv=2026-02-06&sp=rwl&sig=a%2Fb%3D").status, 200);
    assert_eq!(head("timeout=5&sig=a/b%3D&sp=rwl&sv=2026-02-06").status, 200);
    assert_eq!(refusal(&head("")), (403, "AuthenticationFailed"));
    assert_eq!(refusal(&head("sv=2026-02-06&sp=rwl&sig=other")), (403, "AuthenticationFailed"));
    assert_eq!(refusal(&head("sv=2026-02-06&sp=rwl")), (403, "AuthenticationFailed"));
}

#[test]
fn a_token_has_to_be_on_every_request() {
    let ground = Ground::new();
    ground.fake.require(Auth::Bearer("t0ken".to_owned()));
    let head = ground.fake.request("HEAD", BLOB, "");
    assert_eq!(refusal(&ground.fake.send(&head)), (403, "AuthenticationFailed"));
    assert_eq!(
        refusal(&ground.fake.send(&head.clone().with("authorization", "Bearer other"))),
        (403, "AuthenticationFailed")
    );
    assert_eq!(ground.fake.send(&head.with("authorization", "Bearer t0ken")).status, 200);
}
