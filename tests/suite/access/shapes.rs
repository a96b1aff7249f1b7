//! Secrets behind the names and in the places that the rules of public scanners know, put together
//! anew for each run.

/// Names as programs, files and people write them.
const NAMES: &str = "\
    password passwd pwd db_pass secret token api_key apikey api-key apiKey client_secret \
    access_token auth-token refresh_token jwt_secret secret_key privateKey encryption_key \
    mail_password webhook_secret signingKey app_secret session_secret adminPassword \
    access_key auth_token service_key DbPassword github_pat smtpPass bearerToken \
    consumerSecret licenseKey cookie_secret masterKey hmac_key clientSecret redis_password \
    rootPassword db_pwd oauth_token sessionToken api_secret stripe_key deploy_token \
    bot_token user_pass adminPwd account_key shared_secret signature_key sonar_token \
    slack_token";

/// Places: `@` is the secret, `№` the name as it is, `%` the name as an environment has it.
const PLACES: &str = r##"%=@
export %=@
export %="@"
%='@'
export CI=1 %=@ && make
№: @
№: "@"
№: '@'  # rotated in May
"№": "@"
{"№":"@","ok":true}
{\"№\":\"@\"}
№ = @
№ = "@"
№="@"
const № = "@";
№ := "@"
$№ = '@';
'№' => '@',
define('%', '@');
define( "%", "@" );
os.environ["%"] = "@"
process.env.% = '@';
static final String % = "@";
#define % "@"
<add key="№" value="@"/>
<№>@</№>
-D№=@
./deploy --№ @
./deploy --№=@
GET /v1/items?№=@&page=2
https://host/v1/items?page=2&№=@
- name: %\n  value: "@"
docker run -e %=@ image
ENV % @
ENV %=@
ARG %=@
| Host | № |\n|---|---|\n| db1 | @ |
| Host | № | Owner |\n| --- | :-: | --- |\n| db1 | `@` | ada |
| № | @ |
- **№**: `@`
- №: @
level=info №=@ status=200
2026-11-26T10:00:00Z DEBUG client: №=@
[config] № => @
host,№,owner\ndb1,@,ada
spring.app.№=@
app.№: @
　№：@
№ -> @
&quot;№&quot;:&quot;@&quot;
next=%2Fa&№%3D@
{"name": "№", "value": "@"}
set -gx % @
setx % "@"
Environment="%=@"
secrets:\n  №: @\n
[section]\n№=@\nother=1
№ "@"
.№("@")
№=@;host=db1
export const № = "@" as const;
№ = '@' # set in the console
№: @ # prod
№ : "@"
{ "№" : "@" }
{"a":1,"№":"@","b":[1,2]}
"№" = "@"
var № string = "@"
private const string № = "@";
public String № = "@";
$this->№ = "@";
$config['№'] = '@';
config.№ = "@"
self.№ = "@"
ENV['%'] = '@'
ENV["%"] ||= "@"
putenv('%=@');
setenv("%", "@", 1);
os.Setenv("%", "@")
System.setProperty("№", "@");
:№ => "@",
№: '@',
val № = "@"
let № = '@'
<property name="№" value="@"/>
<№ type="text">@</№>
<entry key="№">@</entry>
set %=@
$env:% = "@"
%='@' ./run.sh
env %=@ cmd
--№ "@"
--№='@'
-№ @
curl -d "user=x&№=@" https://h
curl -d '{"№":"@"}' https://h
-H "№: @"
№ = """@"""
kubectl create secret generic x --from-literal=№=@
helm install x --set app.№=@
terraform apply -var '№=@'
№ = "@" // TODO
* №: @
> №: @
1. №: `@`
The № is `@`.
№ is @
my № was "@"
INFO №='@'
{№: "@"}
[№="@"]
(№: @)
№ "@";
INSERT INTO t (№) VALUES ('@');
UPDATE t SET № = '@' WHERE id=1;
{"key":"№","value":"@"}
{"Name":"%","Value":"@"}
- key: №\n  value: @
№:\n  @
№: >-\n  @
№:\t@
| №: | @ |
| User | № |\n| ---- | ---- |\n| app | @ |\n| b | x |
id;№\n1;@
id\t№\n1\t@"##;

/// Values, whose parts in braces are drawn.
const VALUES: &str = "\
    {alnum:10} {alnum:12} {alnum:24} {alnum:40} {hex:32} {hex:64} {lower:12} {lower:16} \
    {letters:16} {letters:20} falcon{digits:4} Summer{digits:2}! dragon{digits:3} {b64:43}= {b64:22}== {uuid} \
    {lower:4}-{lower:4}-{digits:4} {lower:5}_{alnum:6} {letters:6}/{alnum:8} {alnum:8}.{alnum:16} {lower:6}{digits:6}";

pub(crate) struct Shape {
    pub text: String,
    pub secret: String,
    pub place: &'static str,
    pub value: &'static str,
    pub name: &'static str,
}

/// A secret with a name, a value and a place that are drawn.
pub(crate) fn shape(draw: &mut impl FnMut() -> u64) -> Shape {
    let mut one = |all: Vec<&'static str>| all[draw() as usize % all.len()];
    let name = one(NAMES.split_ascii_whitespace().collect());
    let place = one(PLACES.lines().collect());
    let value = one(VALUES.split_ascii_whitespace().collect());
    let secret = drawn(value, draw);
    let text = place.replace("\\n", "\n").replace("\\t", "\t").replace('№', name);
    // What is escaped for an address is no place of a name.
    let text = text.replace("%2", "\u{1}2").replace("%3", "\u{1}3").replace('%', &capitals(name));
    let text = text.replace('\u{1}', "%").replace('@', &secret);
    Shape { text, secret, place, value, name }
}

/// The name as variables of an environment have it.
fn capitals(name: &str) -> String {
    let mut capitals = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            capitals.push('_');
        }
        capitals.push(if c == '-' { '_' } else { c.to_ascii_uppercase() });
    }
    capitals
}

pub(crate) fn drawn(template: &str, draw: &mut impl FnMut() -> u64) -> String {
    let mut text = String::new();
    for part in template.split_inclusive('}') {
        let (plain, blank) = part.split_once('{').unwrap_or((part, ""));
        text.push_str(plain);
        let mut some = |class: &str, length: usize| {
            let letters: &[u8] = match class {
                "hex" => b"0123456789abcdef",
                "digits" => b"0123456789",
                "lower" => b"abcdefghijklmnopqrstuvwxyz",
                "letters" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
                "b64" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
                _ => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
            };
            for _ in 0..length {
                text.push(char::from(letters[draw() as usize % letters.len()]));
            }
        };
        if blank == "uuid}" {
            [8, 4, 4, 4, 12].iter().for_each(|length| some("hex", *length));
        } else if let Some((class, length)) = blank.trim_end_matches('}').split_once(':') {
            some(class, length.parse().unwrap_or_default());
        }
    }
    text
}
