//! What git's own files say about a working directory, read without running git: hosts start
//! servers with a bare environment, and a claim records branch and head each time. Formats:
//! gitrepository-layout(5). Only where references are in tables, git itself is asked.
//!
//! Everything read here may be garbage or hostile. Reads are bounded, and what does not parse is
//! absent.

use std::io::{BufRead, BufReader, Read};
use std::iter::successors;
use std::path::{Path, PathBuf};

use fs_err as fs;

mod link;
mod tables;

pub use link::BrokenLink;

/// The largest file that is read as a whole, in bytes; larger ones are not git's.
const FILE_LIMIT: u64 = 1 << 20;
/// Most bytes of `packed-refs` that are read: about half a million refs.
const PACKED_REFS_LIMIT: u64 = 64 << 20;
/// As in git: a longer chain of symbolic refs is a loop.
const SYMBOLIC_REF_DEPTH: usize = 5;

/// A checkout and what is checked out in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    pub root: PathBuf,
    /// Without `refs/heads/`; absent on a detached head.
    pub branch: Option<String>,
    /// 40 or 64 hexadecimal digits; absent before the first commit.
    pub head: Option<String>,
}

impl Worktree {
    /// The worktree that `cwd` is in; none outside a repository and inside a bare one.
    pub fn at(cwd: &Path) -> Option<Self> {
        Self::of(Repository::containing(cwd)?)
    }

    /// The worktree around `cwd` of the repository that the board in `board` belongs to. The
    /// board's paths are relative to that worktree's root, so a submodule's files count as the
    /// superproject's. If the board belongs to another repository or to none, the innermost
    /// worktree that is no submodule's.
    pub fn of_board(board: &Path, cwd: &Path) -> Option<Self> {
        Self::of(Project::of(board).around(cwd)?.0)
    }

    /// The worktree, chosen in the same way, around `dir`, where a file is. None in a repository
    /// that has nothing to do with the board; the one that the session in `cwd` is in has.
    pub fn of_file(board: &Path, cwd: &Path, dir: &Path) -> Option<Self> {
        let project = Project::of(board);
        let (repository, is_project) = project.around(dir)?;
        let session = project.around(cwd);
        let is_of_none =
            project.owner.is_none() && !session.as_ref().is_some_and(|(_, is_project)| *is_project);
        let is_sessions =
            session.is_some_and(|(session, _)| session.common_dir == repository.common_dir);
        if is_project || is_of_none || is_sessions { Self::of(repository) } else { None }
    }

    /// The worktree around `dir`, if it is one of the repository that the board belongs to or that
    /// the session in `cwd` is in.
    pub fn of_session(board: &Path, cwd: &Path, dir: &Path) -> Option<Self> {
        let project = Project::of(board);
        let (repository, is_project) = project.around(dir)?;
        let is_sessions = project
            .around(cwd)
            .is_some_and(|(session, _)| session.common_dir == repository.common_dir);
        if is_project || is_sessions { Self::of(repository) } else { None }
    }

    fn of(repository: Repository) -> Option<Self> {
        let target = read_small(&repository.git_dir.join("HEAD"));
        if target.as_deref().is_some_and(tables::are_meant) {
            let root = repository.root?;
            let (branch, head) = tables::checked_out(&root);
            return Some(Self { root, branch, head });
        }
        Some(Self {
            branch: target.as_deref().and_then(branch_name).map(str::to_owned),
            head: target.and_then(|target| repository.resolve(target)),
            root: repository.root?,
        })
    }
}

/// The project that a board belongs to.
struct Project {
    dir: Option<PathBuf>,
    /// The repository that the board is in.
    owner: Option<Repository>,
}

impl Project {
    fn of(board: &Path) -> Self {
        let dir = board.parent().and_then(|dir| fs::canonicalize(dir).ok());
        Self { owner: dir.as_deref().and_then(Repository::containing), dir }
    }

    /// The repository around `cwd` that is the project's, and true; or else the innermost that is
    /// no submodule, and false.
    fn around(&self, cwd: &Path) -> Option<(Repository, bool)> {
        let innermost = Repository::containing(cwd)?;
        let owned =
            successors(Some(innermost.clone()), Repository::around).find(|one| self.owns(one));
        let top = || {
            successors(Some(innermost), |one| {
                one.around().filter(|around| one.is_submodule_of(around))
            })
            .last()
        };
        owned.map(|owned| (owned, true)).or_else(|| Some((top()?, false)))
    }

    fn owns(&self, repository: &Repository) -> bool {
        let shares =
            self.owner.as_ref().is_some_and(|owner| owner.common_dir == repository.common_dir);
        shares || self.dir.as_ref().is_some_and(|dir| repository.main_root() == *dir)
    }
}

/// Where a repository's files are, seen from one of its worktrees. Paths are canonical.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// Toplevel of the worktree; absent in a bare repository.
    pub root: Option<PathBuf>,
    /// Holds this worktree's `HEAD`.
    git_dir: PathBuf,
    /// Holds what all worktrees share; equal to `git_dir` outside linked worktrees.
    common_dir: PathBuf,
}

impl Repository {
    pub fn containing(cwd: &Path) -> Option<Self> {
        let cwd = fs::canonicalize(cwd).ok()?;
        cwd.ancestors().find_map(Self::at_root)
    }

    /// The directory that stands for the repository in all its worktrees: the main worktree's root.
    /// A bare repository has none; there it is the parent of a hidden directory
    /// (`project/.bare` beside `project/main`), otherwise the repository itself, whose parent
    /// may hold other projects. The same holds for a repository made with `--separate-git-dir`,
    /// whose linked worktrees cannot know where the main one is.
    pub fn main_root(&self) -> PathBuf {
        match &self.root {
            Some(root) if self.common_dir.starts_with(root) && self.git_dir == self.common_dir => {
                root.clone()
            }
            _ => main_root_of(&self.common_dir),
        }
    }

    /// The directory in which the repository `of` keeps what belongs to this linked worktree; none
    /// unless each of the two names the other.
    pub fn kept_by(&self, of: &Self) -> Option<&Path> {
        let named = read_small(&self.git_dir.join("gitdir"))?;
        let named = fs::canonicalize(self.git_dir.join(named.trim_end())).ok()?;
        let is_named = named == fs::canonicalize(self.root.as_ref()?.join(".git")).ok()?;
        (is_named && self.common_dir == of.common_dir).then_some(&self.git_dir)
    }

    /// The repository that this one's worktree lies in.
    pub fn around(&self) -> Option<Self> {
        Self::containing(self.root.as_ref()?.parent()?)
    }

    /// The repository that this one is a submodule of; of a submodule's linked worktree, too.
    pub fn superproject(&self) -> Option<Self> {
        let of = |one: &Self| one.around().filter(|around| one.is_submodule_of(around));
        of(self).or_else(|| of(&Self::containing(&self.main_root())?))
    }

    fn is_submodule_of(&self, around: &Self) -> bool {
        let is_kept = self
            .git_dir
            .strip_prefix(&around.git_dir)
            .is_ok_and(|name| name.starts_with("modules"));
        is_kept || self.root.as_ref().is_some_and(|root| around.lists(root))
    }

    /// Whether `.gitmodules` lists the submodule at `root`, whose git directory may be in its own
    /// worktree.
    fn lists(&self, root: &Path) -> bool {
        let Some(own) = &self.root else { return false };
        let listed = read_small(&own.join(".gitmodules")).unwrap_or_default();
        let paths = listed
            .lines()
            .filter_map(|line| line.trim().strip_prefix("path")?.trim_start().strip_prefix('='));
        paths.map(str::trim).any(|path| own.join(path) == *root)
    }

    fn at_root(dir: &Path) -> Option<Self> {
        let dot_git = dir.join(".git");
        if dot_git.is_file() {
            return Some(Self::of_git_file(dir, dot_git));
        }
        if is_git_dir(&dot_git) {
            return Some(Self::new(Some(dir), fs::canonicalize(&dot_git).ok()?));
        }
        is_git_dir(dir).then(|| Self::new(worktree_around(dir), dir.to_owned()))
    }

    /// A linked worktree or a submodule. A `.git` file that leads nowhere still marks a toplevel.
    fn of_git_file(dir: &Path, dot_git: PathBuf) -> Self {
        let git_dir = read_small(&dot_git)
            .and_then(|text| Some(dir.join(text.strip_prefix("gitdir:")?.trim())))
            .and_then(|path| fs::canonicalize(path).ok())
            .filter(|path| path.join("HEAD").is_file());
        Self::new(Some(dir), git_dir.unwrap_or(dot_git))
    }

    fn new(root: Option<&Path>, git_dir: PathBuf) -> Self {
        let common_dir = read_small(&git_dir.join("commondir"))
            .and_then(|text| fs::canonicalize(git_dir.join(text.trim_end())).ok())
            .filter(|path| is_git_dir(path));
        Self {
            root: root.map(Path::to_owned),
            common_dir: common_dir.unwrap_or_else(|| git_dir.clone()),
            git_dir,
        }
    }

    fn resolve(&self, mut target: String) -> Option<String> {
        for _ in 0..SYMBOLIC_REF_DEPTH {
            let Some(name) = ref_name(&target) else {
                return object_id(target.trim_end());
            };
            target = match self.loose_ref(name) {
                Some(next) => next,
                None => return packed_ref(&self.common_dir.join("packed-refs"), name),
            };
        }
        None
    }

    fn loose_ref(&self, name: &str) -> Option<String> {
        let dir = if name.starts_with("refs/heads/") { &self.common_dir } else { &self.git_dir };
        read_small(&dir.join(name))
    }
}

fn is_git_dir(path: &Path) -> bool {
    path.join("HEAD").is_file() && path.join("objects").is_dir() && path.join("refs").is_dir()
}

/// The worktree's root, if `git_dir` is an ordinary `.git`: hooks run in there.
fn worktree_around(git_dir: &Path) -> Option<&Path> {
    git_dir.parent().filter(|_| git_dir.ends_with(".git"))
}

fn main_root_of(common_dir: &Path) -> PathBuf {
    let hidden =
        common_dir.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    match (core_worktree(common_dir), common_dir.parent()) {
        (Some(worktree), _) => worktree,
        (None, Some(parent)) if hidden => parent.to_owned(),
        _ => common_dir.to_owned(),
    }
}

/// `core.worktree`: the way back from a submodule's git directory to its checkout.
fn core_worktree(common_dir: &Path) -> Option<PathBuf> {
    let config = read_small(&common_dir.join("config"))?;
    let mut section = "";
    let value = config.lines().map(str::trim).find_map(|line| {
        if line.starts_with('[') {
            section = line;
        }
        let (key, value) = line.split_once('=')?;
        let found = section.eq_ignore_ascii_case("[core]")
            && key.trim_end().eq_ignore_ascii_case("worktree");
        found.then(|| value.trim())
    })?;
    let worktree = fs::canonicalize(common_dir.join(value)).ok()?;
    worktree.is_dir().then_some(worktree)
}

fn branch_name(head: &str) -> Option<&str> {
    ref_name(head)?.strip_prefix("refs/heads/")
}

/// The name in `ref: NAME`, if it is one that may be used as a path below a git directory.
fn ref_name(text: &str) -> Option<&str> {
    let name = text.strip_prefix("ref:")?.trim();
    let plain = |part: &str| {
        !part.is_empty() && !part.starts_with('.') && !part.contains(['\\', '\0', ':'])
    };
    (name.starts_with("refs/") && name.split('/').all(plain)).then_some(name)
}

fn object_id(text: &str) -> Option<String> {
    let hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (hex && matches!(text.len(), 40 | 64)).then(|| text.to_owned())
}

fn packed_ref(path: &Path, name: &str) -> Option<String> {
    let file = path.is_file().then(|| fs::File::open(path).ok())??;
    BufReader::new(file.take(PACKED_REFS_LIMIT)).split(b'\n').map_while(Result::ok).find_map(
        |line| {
            let (id, packed) = std::str::from_utf8(&line).ok()?.split_once(' ')?;
            (packed == name).then(|| object_id(id))
        },
    )?
}

fn read_small(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > FILE_LIMIT {
        return None;
    }
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    file.take(FILE_LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "1111111111111111111111111111111111111111";
    const NEW: &str = "2222222222222222222222222222222222222222";

    struct Disk(tempfile::TempDir);

    impl Disk {
        fn new() -> Self {
            Self(tempfile::tempdir().expect("a temporary directory"))
        }

        fn path(&self, name: &str) -> PathBuf {
            let base = fs::canonicalize(self.0.path()).expect("canonical");
            base.join(name)
        }

        fn file(&self, name: &str, text: &str) -> &Self {
            let path = self.path(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text).expect("a file");
            self
        }

        fn git_dir(&self, name: &str, head: &str) -> &Self {
            fs::create_dir_all(self.path(name).join("objects")).expect("objects");
            fs::create_dir_all(self.path(name).join("refs/heads")).expect("refs");
            self.file(&format!("{name}/HEAD"), head)
        }

        /// A worktree `name` whose repository is the git directory `common`.
        fn linked(&self, common: &str, name: &str, head: &str) -> &Self {
            let git_dir = format!("{common}/worktrees/{name}");
            self.file(&format!("{git_dir}/HEAD"), head)
                .file(&format!("{git_dir}/commondir"), "../..\n")
                .file(&format!("{name}/.git"), &format!("gitdir: ../{git_dir}\n"))
        }

        fn main_root(&self, cwd: &str) -> PathBuf {
            let repository = Repository::containing(&self.path(cwd)).expect("a repository");
            repository.main_root()
        }

        fn at(&self, cwd: &str) -> Worktree {
            Worktree::at(&self.path(cwd)).expect("a worktree")
        }
    }

    #[test]
    fn branch_and_head_come_from_a_loose_ref_before_packed_refs() {
        let disk = Disk::new();
        disk.git_dir("p/.git", "ref: refs/heads/feat/x\n")
            .file(
                "p/.git/packed-refs",
                &format!("# pack-refs with: peeled\n{OLD} refs/heads/feat/x\n"),
            )
            .file("p/src/a.rs", "");
        let seen = disk.at("p/src");
        assert_eq!((seen.root, seen.branch.as_deref()), (disk.path("p"), Some("feat/x")));
        assert_eq!(seen.head.as_deref(), Some(OLD));
        disk.file("p/.git/refs/heads/feat/x", &format!("{NEW}\n"));
        assert_eq!(disk.at("p").head.as_deref(), Some(NEW));
    }

    #[test]
    fn a_detached_head_has_no_branch() {
        let disk = Disk::new();
        disk.git_dir("p/.git", &format!("{OLD}\n"));
        let seen = disk.at("p");
        assert_eq!((seen.branch, seen.head.as_deref()), (None, Some(OLD)));
    }

    #[test]
    fn linked_worktrees_share_the_main_root_and_keep_their_branch() {
        let disk = Disk::new();
        disk.git_dir("p/.git", "ref: refs/heads/main\n")
            .linked("p/.git", "w", "ref: refs/heads/topic\n")
            .file("p/.git/refs/heads/topic", NEW);
        assert_eq!(disk.main_root("w"), disk.path("p"));
        assert_eq!(disk.main_root("p"), disk.path("p"));
        assert_eq!(disk.main_root("p/.git/worktrees/w"), disk.path("p"));
        let seen = disk.at("w");
        assert_eq!((seen.root, seen.branch.as_deref()), (disk.path("w"), Some("topic")));
        assert_eq!(seen.head.as_deref(), Some(NEW));
    }

    #[test]
    fn a_submodule_and_its_linked_worktree_belong_to_the_submodule() {
        let disk = Disk::new();
        disk.git_dir("p/.git", "ref: refs/heads/main\n")
            .git_dir("p/.git/modules/sub", "ref: refs/heads/main\n")
            .file(
                "p/.git/modules/sub/config",
                "[core]\n\tbare = false\n\tworktree = ../../../sub\n",
            )
            .file("p/sub/.git", "gitdir: ../.git/modules/sub\n")
            .linked("p/.git/modules/sub", "w", "ref: refs/heads/topic\n");
        assert_eq!(disk.main_root("p/sub"), disk.path("p/sub"));
        assert_eq!(disk.main_root("w"), disk.path("p/sub"));
    }

    #[test]
    fn a_submodule_is_part_of_the_worktree_that_its_board_belongs_to() {
        let disk = Disk::new();
        disk.git_dir("p/.git", "ref: refs/heads/main\n")
            .git_dir("p/.git/modules/sub", "ref: refs/heads/main\n")
            .file("p/.git/modules/sub/config", "[core]\n\tworktree = ../../../sub\n")
            .file("p/sub/.git", "gitdir: ../.git/modules/sub\n")
            .git_dir("p/sub/deep/.git", "ref: refs/heads/main\n")
            .linked("p/.git", "w", "ref: refs/heads/topic\n")
            .git_dir("p/.git/worktrees/w/modules/sub", "ref: refs/heads/main\n")
            .file("w/sub/.git", "gitdir: ../../p/.git/worktrees/w/modules/sub\n")
            .git_dir("x/.git", "ref: refs/heads/main\n")
            .git_dir("q/.bare", "ref: refs/heads/main\n")
            .linked("q/.bare", "v", "ref: refs/heads/topic\n")
            .git_dir("v/inner/.git", "ref: refs/heads/main\n");
        let root = |board: &str, cwd: &str| {
            let worktree =
                Worktree::of_board(&disk.path(board), &disk.path(cwd)).expect("a worktree");
            worktree
                .root
                .strip_prefix(disk.path(""))
                .expect("below")
                .to_str()
                .expect("text")
                .to_owned()
        };
        for board in ["p/.coordination", "p/tools/.coordination"] {
            fs::create_dir_all(disk.path(board)).expect("a board");
            for (cwd, expected) in
                [("p", "p"), ("p/sub", "p"), ("p/sub/deep", "p"), ("w/sub", "w"), ("x", "x")]
            {
                assert_eq!(root(board, cwd), expected, "{board} {cwd}");
            }
        }
        assert_eq!(root("p/sub/.coordination", "p/sub/deep"), "p/sub");
        assert_eq!(root("q/.coordination", "v/inner"), "v");
        for (cwd, expected) in
            [("p/sub", "p"), ("w/sub", "w"), ("w", "w"), ("p/sub/deep", "p/sub/deep"), ("v", "v")]
        {
            assert_eq!(root("elsewhere/.coordination", cwd), expected, "{cwd}");
        }
        assert_eq!(Worktree::of_board(&disk.path("p/.coordination"), &disk.path("")), None);
    }

    #[test]
    fn another_repositorys_files_are_not_the_boards_unless_the_session_is_there() {
        let disk = Disk::new();
        disk.git_dir("p/.git", "ref: refs/heads/main\n")
            .git_dir("p/nested/.git", "ref: refs/heads/main\n")
            .linked("p/.git", "w", "ref: refs/heads/topic\n")
            .git_dir("clone/.git", "ref: refs/heads/main\n")
            .linked("clone/.git", "of-clone", "ref: refs/heads/topic\n")
            .git_dir("x/.git", "ref: refs/heads/main\n")
            .git_dir("q/.bare", "ref: refs/heads/main\n")
            .linked("q/.bare", "v", "ref: refs/heads/topic\n")
            .file("elsewhere/a", "");
        fs::create_dir(disk.path("p/.coordination")).expect("a board");
        let root = |board: &str, cwd: &str, dir: &str| {
            let found = Worktree::of_file(&disk.path(board), &disk.path(cwd), &disk.path(dir));
            found.map(|found| {
                found
                    .root
                    .strip_prefix(disk.path(""))
                    .expect("below")
                    .to_str()
                    .expect("text")
                    .to_owned()
            })
        };
        let cases = [
            ("p/.coordination", "p", [Some("p"), Some("p"), Some("w"), None, None, None]),
            (
                "p/.coordination",
                "clone",
                [Some("p"), Some("p"), Some("w"), Some("clone"), Some("of-clone"), None],
            ),
            ("p/.coordination", "elsewhere", [Some("p"), Some("p"), Some("w"), None, None, None]),
            ("q/.coordination", "v", [None; 6]),
        ];
        for (board, cwd, expected) in cases {
            let found =
                ["p", "p/nested", "w", "clone", "of-clone", "x"].map(|dir| root(board, cwd, dir));
            assert_eq!(found.each_ref().map(Option::as_deref), expected, "{board} from {cwd}");
        }
        assert_eq!(root("q/.coordination", "v", "v").as_deref(), Some("v"));
        assert_eq!(
            root("elsewhere/.coordination", "clone", "x").as_deref(),
            Some("x"),
            "the board is no repository's"
        );
    }

    #[test]
    fn a_bare_repository_stands_for_itself_and_a_hidden_one_for_its_parent() {
        let disk = Disk::new();
        disk.git_dir("x.git", "ref: refs/heads/main\n")
            .linked("x.git", "w", "ref: refs/heads/topic\n")
            .git_dir("p/.bare", "ref: refs/heads/main\n")
            .file("p/.git", "gitdir: ./.bare\n")
            .linked("p/.bare", "v", "ref: refs/heads/topic\n");
        assert_eq!(disk.main_root("w"), disk.path("x.git"));
        assert_eq!(disk.main_root("x.git/refs"), disk.path("x.git"));
        assert_eq!(Worktree::at(&disk.path("x.git")), None);
        assert_eq!(disk.main_root("v"), disk.path("p"));
        assert_eq!(disk.main_root("p"), disk.path("p"));
    }

    #[test]
    fn garbage_is_absent_and_never_followed() {
        let disk = Disk::new();
        disk.git_dir("p/.git", "");
        for head in [
            "ref: refs/heads/../../../../etc/passwd",
            "ref: refs/heads/.invalid",
            "ref: ",
            "ref: HEAD",
            "zz",
        ] {
            disk.file("p/.git/HEAD", head);
            assert_eq!((disk.at("p").branch, disk.at("p").head), (None, None), "{head}");
        }
        disk.file("p/.git/HEAD", "ref: refs/heads/a")
            .file("p/.git/refs/heads/a", "ref: refs/heads/a");
        assert_eq!(disk.at("p").head, None);
        fs::remove_file(disk.path("p/.git/refs/heads/a")).expect("removed");
        fs::write(disk.path("p/.git/packed-refs"), b"\xff\xfe\n\n refs/heads/a\nx refs/heads/a\n")
            .expect("written");
        assert_eq!(disk.at("p").head, None);
        fs::write(disk.path("p/.git/HEAD"), vec![b'a'; 2 << 20]).expect("written");
        assert_eq!(disk.at("p").head, None);
    }

    #[test]
    fn a_git_file_that_leads_nowhere_still_marks_a_root() {
        let disk = Disk::new();
        disk.git_dir("p/.git", "ref: refs/heads/main\n")
            .file("p/w/.git", "gitdir: /nowhere/at/all\n")
            .file("p/w/src/a.rs", "");
        assert_eq!(disk.main_root("p/w/src"), disk.path("p/w"));
        assert_eq!(disk.at("p/w").head, None);
    }
}
