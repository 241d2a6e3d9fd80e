"""Starts one process of a container: python -I -S sandbox.py FD, where FD is a socket that first says, in one line, how.

The process gets namespaces of its own: mounts on copies in memory of the machine's file systems, so that nothing that
it or its mount points leave there remains; process numbers, so that the end of its first process ends all of them; and
the host's name. With "join" it enters those of a process that runs. It runs as the first process of them, as a
container's process does: signals that it has no handler for do nothing to it.

Answers with lines: {"pid": N} once the program runs or {"error": TEXT}; then {"exit": CODE}, 128 + N after a
signal N. When the other end of the socket closes, the process is killed.

SPDX-License-Identifier: Apache-2.0
"""

import ctypes
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_NS, NEW_UTS, NEW_IPC, NEW_USER, NEW_PID = 0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
KEPT_FLAGS = 0xC0E  # what a mount of the machine may forbid, and an unprivileged remount must not allow again
DETACH = 2
PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP = 38, 24
CAPABILITIES = 41
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
NAMES = ("/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf")
OLD = "/.old"
DEVICES = re.compile(r"null|zero|full|u?random|tty|pts|ptmx|nvidia.*|kfd|dri|fuse")


def check(result, what):
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def mount(source, target, kind=None, flags=0, data=None):
    texts = [None if text is None else text.encode() for text in (source, target, kind, data)]
    check(LIBC.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]), f"mount {source} on {target}")


def protect(target):
    """Makes a mount read-only."""
    flags = os.statvfs(target).f_flag & KEPT_FLAGS
    mount(None, target, None, REMOUNT | BIND | RDONLY | flags)


def of_kernel(point):
    return any(point == top or point.startswith(top + "/") for top in ("/proc", "/sys", "/dev"))


def machine_folders(scratch):
    """The folders of the machine that a container sees: those at the top, and file systems that are mounted below."""
    tops = [entry.path for entry in os.scandir("/") if entry.is_dir(follow_symlinks=False)]
    points = []
    with open("/proc/self/mountinfo") as lines:
        for line in lines:
            point = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), line.split()[4])
            if point not in ("/", scratch, *NAMES, *tops, *points):
                points.append(point)
    return [point for point in tops + points if not of_kernel(point)]


def stack(spec, point, target, index):
    """Stacks memory over one folder."""
    upper, work = f"{spec['scratch']}/upper{index}", f"{spec['scratch']}/work{index}"
    os.mkdir(upper)
    os.mkdir(work)
    shutil.copymode(point, upper)
    if not spec["user"]:
        os.chown(upper, os.stat(point).st_uid, os.stat(point).st_gid)
    data = f"lowerdir={point},upperdir={upper},workdir={work}" + (",userxattr" if spec["user"] else "")
    mount("overlay", target, "overlay", 0, data)


def make_devices(target):
    """A /dev of the container's own, for mount points in it, with the devices that containers have."""
    mount("tmpfs", target, "tmpfs", NOSUID, "mode=755,size=64k")
    for entry in os.scandir("/dev"):
        path = f"{target}/{entry.name}"
        if entry.is_symlink():
            os.symlink(os.readlink(entry), path)
        elif DEVICES.fullmatch(entry.name):
            if entry.is_dir():
                os.mkdir(path)
            else:
                open(path, "x").close()
            mount(entry.path, path, None, BIND | REC)
    os.mkdir(target + "/shm")
    mount("tmpfs", target + "/shm", "tmpfs", NOSUID | NODEV, "mode=1777,size=64m")


def build_root(spec):
    """A root in memory, and in it the machine's folders, with memory over each. Returns it, and what can be written."""
    scratch = spec["scratch"]
    mount("tmpfs", scratch, "tmpfs", 0, "mode=755")
    root = scratch + "/root"
    os.mkdir(root)
    mount("tmpfs", root, "tmpfs", 0, "mode=755")
    for entry in os.scandir("/"):
        if entry.is_symlink():
            os.symlink(os.readlink(entry), root + entry.path)
        elif entry.is_dir():
            os.mkdir(root + entry.path)
    layers = ["/"]
    for index, point in enumerate(machine_folders(scratch)):
        target = root + point
        if not os.path.exists(target):
            continue
        try:
            stack(spec, point, target, index)
            layers.append(point)
        except OSError:  # a file, or what cannot be stacked: a container may read it
            mount(point, target, None, BIND | REC)
            protect(target)
    make_devices(root + "/dev")
    mount("/sys", root + "/sys", None, BIND | REC)
    if spec["pids"]:
        mount("proc", root + "/proc", "proc", NOSUID | NODEV | NOEXEC)
    else:
        mount("/proc", root + "/proc", None, BIND | REC)
    return root, layers


def enter_root(root):
    os.makedirs(root + OLD)
    number = PIVOT_ROOT[os.uname().machine]
    check(LIBC.syscall(number, root.encode(), (root + OLD).encode()), "pivot_root")
    os.chdir("/")


def replace(path, text):
    """A file of the container's own. It takes the place of a link, for what that leads to may be elsewhere."""
    if os.path.lexists(path):
        os.unlink(path)
    with open(path, "w") as file:
        file.write(text)


def mount_volumes(spec):
    replace("/etc/resolv.conf", "")
    replace("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")
    # The folder of the hosts file is mounted, not the file: a reader then sees it whole, old or new.
    os.makedirs("/.hosts", exist_ok=True)
    mount(OLD + spec["hosts"], "/.hosts", None, BIND)
    protect("/.hosts")
    if os.path.lexists("/etc/hosts"):
        os.unlink("/etc/hosts")
    os.symlink("/.hosts/hosts", "/etc/hosts")
    for volume in spec["mounts"]:
        target = volume["target"]
        if "memory" in volume:
            os.makedirs(target, exist_ok=True)
            size = f",size={volume['memory']}" if volume["memory"] else ""
            mount("tmpfs", target, "tmpfs", NOSUID | NODEV, f"mode=1777{size}")
            continue
        source = OLD + volume["source"]
        if os.path.isdir(source):
            os.makedirs(target, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if not os.path.exists(target):
                open(target, "x").close()
        mount(source, target, None, BIND | REC)
        if volume["readOnly"]:
            protect(target)


def isolate(spec):
    flags = NEW_NS | NEW_UTS | NEW_IPC
    check(LIBC.unshare(flags), "unshare")
    mount("none", "/", None, REC | PRIVATE)
    socket.sethostname(spec["hostname"])
    root, layers = build_root(spec)
    enter_root(root)
    mount_volumes(spec)
    os.makedirs(spec["cwd"], exist_ok=True)
    check(LIBC.umount2(OLD.encode(), DETACH), "umount")
    os.rmdir(OLD)
    targets = [volume["target"] for volume in spec["mounts"]]
    for layer in layers if spec["readOnlyRoot"] else []:
        if layer not in targets:  # what is mounted there hides it
            protect(layer)


def join(spec):
    """Enters the namespaces of a process. Those of process numbers hold for children only."""
    kinds = (["user"] if spec["user"] else []) + ["mnt", "uts", "ipc"] + (["pid"] if spec["pids"] else [])
    handles = [os.open(f"/proc/{spec['join']}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in kinds]
    for handle in handles:
        check(LIBC.setns(handle, 0), "setns")


def limit(spec):
    if spec["memory"]:
        resource.setrlimit(resource.RLIMIT_AS, (spec["memory"], spec["memory"]))
    if not spec["user"]:
        os.setgroups(spec["groups"])
        os.setgid(spec["gid"])
    if spec["dropAll"]:
        for capability in range(CAPABILITIES):
            LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    if not spec["user"]:
        os.setuid(spec["uid"])
    if spec["noNewPrivileges"]:
        check(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")


def become(spec, report):
    """The child: ends as the program, or reports why not."""
    try:
        os.setsid()
        if "join" not in spec:
            isolate(spec)
        os.chdir(spec["cwd"])
        limit(spec)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        program = spec["argv"][0]
        path = program if "/" in program else shutil.which(program, path=spec["env"]["PATH"])
        if not path:
            raise OSError(f'exec: "{program}": executable file not found in $PATH')
        os.execve(path, spec["argv"], spec["env"])
    except Exception as error:  # noqa: BLE001  there is nobody else to tell
        os.write(report, str(error).encode())
    finally:
        os._exit(127)


def unshare_user():
    uid, gid = os.getuid(), os.getgid()
    check(LIBC.unshare(NEW_USER), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def wait(child, line):
    """Waits for the child, and for the other end of the socket, which may be gone first."""
    handle = os.pidfd_open(child)
    ready, _, _ = select.select([handle, line], [], [])
    if handle not in ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def main():
    line = socket.socket(fileno=int(sys.argv[1]))
    with line.makefile() as reader:
        spec = json.loads(reader.readline())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if "join" in spec:
        join(spec)
    else:
        if spec["user"]:
            unshare_user()
        if spec["pids"]:
            check(LIBC.unshare(NEW_PID), "unshare")
    reads, report = os.pipe()
    child = os.fork()
    if child == 0:
        become(spec, report)
    os.close(report)
    for number in range(3):
        os.close(number)  # so that the readers of the output see its end with the program's
    with os.fdopen(reads) as text:
        problem = text.read()
    try:
        line.sendall(json.dumps({"error": problem} if problem else {"pid": child}).encode() + b"\n")
        line.sendall(json.dumps({"exit": wait(child, line)}).encode() + b"\n")
    except BrokenPipeError:  # nobody waits any more
        os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main()
