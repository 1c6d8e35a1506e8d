/* A disk that fails, below SQLite: preloaded into a process, it fails calls on the files of one
   folder as planned, and can cut the power.

   What a power cut leaves: each name in the folder is what it was at the last fsync of the folder,
   or what it is now; each sector of a file is what it was at the file's last fsync, or what it is
   now, so that writes are lost, reordered and torn. Sectors that were waiting for an fsync that
   failed are read back until the cut, and lost then unless they are written again, as on Linux. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTOR = 512, MOST_FILES = 100000, MOST_NAMES = 64 };
enum { READ = 1, WRITE = 2, SYNC = 4, NAME = 8 }; /* kinds of calls; NAME: open, unlink, truncate */

struct bytes {
    char *at;
    size_t n;
};
struct file {
    ino_t inode;          /* 0 once it is unlinked, since its number may be used again */
    struct bytes durable; /* at its last fsync */
    struct bytes last;    /* as it was when it was unlinked */
    struct bytes lost;    /* a flag per sector: an fsync of it failed */
};
struct name {
    char path[512];
    struct file *durable, *now;
};

static struct file files[MOST_FILES];
static struct name names[MOST_NAMES];
static int n_files, n_names;
static char folder[400];
static ino_t folder_inode;
static uint64_t state;
static int planned_kinds, planned_error;
static long calls_left, failing;
long faults_injected;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

static uint64_t draw(uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

static struct bytes content(int fd) {
    struct stat is;
    if (fstat(fd, &is)) abort();
    struct bytes all = {malloc(is.st_size + SECTOR), 0};
    while (all.n < (size_t)is.st_size) {
        ssize_t n = REAL(pread64)(fd, all.at + all.n, is.st_size - all.n, all.n);
        if (n <= 0) abort();
        all.n += n;
    }
    return all;
}

static struct bytes content_at(const char *path) {
    int fd = REAL(open64)(path, O_RDONLY);
    struct bytes all = content(fd);
    close(fd); /* this ends SQLite's locks on the file, so not while it needs them */
    return all;
}

static struct name *name_of(const char *path) {
    size_t n = strlen(folder), end = strlen(path);
    if (!n || strncmp(path, folder, n) || path[n] != '/' || strchr(path + n + 1, '/')) return NULL;
    if (end > 4 && !strcmp(path + end - 4, "-shm")) return NULL; /* rebuilt after a cut */
    for (int i = 0; i < n_names; i++)
        if (!strcmp(names[i].path, path)) return &names[i];
    if (n_names == MOST_NAMES || end >= sizeof names[0].path) abort();
    strcpy(names[n_names].path, path);
    return &names[n_names++];
}

static struct file *file_of(int fd) {
    struct stat is;
    if (!n_files || fstat(fd, &is) || !S_ISREG(is.st_mode)) return NULL;
    for (int i = n_files - 1; i >= 0; i--)
        if (files[i].inode == is.st_ino) return &files[i];
    return NULL;
}

static struct file *new_file(const char *path) {
    struct stat is;
    if (n_files == MOST_FILES || stat(path, &is)) abort();
    files[n_files].inode = is.st_ino;
    return &files[n_files++];
}

static char sector_of(struct bytes all, size_t at, char *to) {
    size_t n = at < all.n ? all.n - at : 0;
    n = n < SECTOR ? n : SECTOR;
    memset(to, 0, SECTOR);
    if (n) memcpy(to, all.at + at, n);
    return n > 0;
}

static int is_lost(struct file *file, size_t at) {
    return at / SECTOR < file->lost.n && file->lost.at[at / SECTOR];
}

/* What is on the disk if each sector that waits gets there in `percent` of cases. */
static struct bytes on_disk(struct file *file, struct bytes now, unsigned percent) {
    struct bytes old = file->durable;
    size_t n = draw(100) < percent ? now.n : old.n;
    struct bytes left = {calloc(n / SECTOR + 1, SECTOR), n};
    for (size_t at = 0; at < n; at += SECTOR)
        sector_of(!is_lost(file, at) && draw(100) < percent ? now : old, at, left.at + at);
    return left;
}

static void lose_waiting(struct file *file, struct bytes now) {
    char new[SECTOR], old[SECTOR];
    size_t n = now.n / SECTOR + 1;
    if (n > file->lost.n) {
        file->lost.at = realloc(file->lost.at, n);
        memset(file->lost.at + file->lost.n, 0, n - file->lost.n);
        file->lost.n = n;
    }
    for (size_t at = 0; at < now.n; at += SECTOR) {
        char is_new = sector_of(now, at, new), was_there = sector_of(file->durable, at, old);
        if (is_new != was_there || memcmp(new, old, SECTOR)) file->lost.at[at / SECTOR] = 1;
    }
}

/* From now on, watch the files in a folder; what they hold is durable. */
void faults_watch(const char *path, uint64_t seed) {
    struct dirent *one;
    struct stat is;
    strcpy(folder, path);
    stat(folder, &is);
    folder_inode = is.st_ino;
    state = seed;
    draw(2);
    DIR *all = opendir(folder);
    while ((one = readdir(all))) {
        char whole[1024];
        snprintf(whole, sizeof whole, "%s/%s", folder, one->d_name);
        if (stat(whole, &is) || !S_ISREG(is.st_mode)) continue;
        struct name *name = name_of(whole);
        if (!name) continue;
        name->now = name->durable = new_file(whole);
        name->now->durable = content_at(whole);
    }
    closedir(all);
}

/* Fail `n` calls of some kinds after the next `after` of them; with error 0, cut the power. */
void faults_plan(int kinds, long after, long n, int error) {
    planned_kinds = kinds, calls_left = after, failing = n, planned_error = error;
}

/* Leave on the disk what a power cut would, and die. */
void faults_cut(void) {
    unsigned percent = draw(3) ? draw(101) : 100 * draw(2);
    struct bytes left[MOST_NAMES];
    struct file *chosen[MOST_NAMES];
    for (int i = 0; i < n_names; i++) {
        chosen[i] = draw(100) < percent ? names[i].now : names[i].durable;
        if (!chosen[i]) continue;
        struct bytes now = chosen[i]->inode ? content_at(names[i].path) : chosen[i]->last;
        left[i] = on_disk(chosen[i], now, percent);
    }
    for (int i = 0; i < n_names; i++) {
        REAL(unlink)(names[i].path);
        if (!chosen[i]) continue;
        int fd = REAL(open64)(names[i].path, O_WRONLY | O_CREAT | O_EXCL, 0600);
        for (size_t at = 0; at < left[i].n;)
            at += REAL(pwrite64)(fd, left[i].at + at, left[i].n - at, at);
    }
    kill(getpid(), SIGKILL);
}

/* Return whether a call fails now; a power cut waits until a write is under way. */
static int fails(int kind) {
    if (!(kind & planned_kinds) || !failing) return 0;
    if (calls_left > 0) return calls_left--, 0;
    faults_injected++, failing--;
    if (!planned_error && kind != WRITE) faults_cut();
    errno = planned_error;
    return 1;
}

static int open_as(const char *path, int flags, mode_t mode) {
    struct name *name = name_of(path);
    if (name && fails(NAME)) return -1;
    int is_new = name && !name->now;
    int fd = REAL(open64)(path, flags, mode);
    if (fd >= 0 && is_new) name->now = new_file(path);
    return fd;
}

#define OPEN(called)                                    \
    int called(const char *path, int flags, ...) {      \
        va_list rest;                                   \
        va_start(rest, flags);                          \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                   \
        return open_as(path, flags, mode);              \
    }
OPEN(open)
OPEN(open64)

int unlink(const char *path) {
    struct name *name = name_of(path);
    if (name && fails(NAME)) return -1;
    if (name && name->now) {
        name->now->last = content_at(path);
        name->now->inode = 0;
        name->now = NULL;
    }
    return REAL(unlink)(path);
}

int ftruncate64(int fd, off64_t n) {
    if (file_of(fd) && fails(NAME)) return -1;
    return REAL(ftruncate64)(fd, n);
}

ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at) {
    struct file *file = file_of(fd);
    if (!file) return REAL(pwrite64)(fd, from, n, at);
    int failed = fails(WRITE);
    for (size_t i = at / SECTOR; n && i <= (at + n - 1) / SECTOR && i < file->lost.n; i++)
        file->lost.at[i] = 0;
    if (failed && planned_error) n = draw(n + 1); /* a part of it arrives */
    ssize_t written = REAL(pwrite64)(fd, from, n, at);
    if (!failed) return written;
    if (!planned_error) faults_cut();
    errno = planned_error;
    return -1;
}

ssize_t write(int fd, const void *from, size_t n) {
    if (!file_of(fd)) return REAL(write)(fd, from, n);
    off64_t at = lseek64(fd, 0, SEEK_CUR);
    ssize_t written = pwrite64(fd, from, n, at);
    if (written > 0) lseek64(fd, at + written, SEEK_SET);
    return written;
}

ssize_t pread64(int fd, void *to, size_t n, off64_t at) {
    if (file_of(fd) && fails(READ)) return -1;
    return REAL(pread64)(fd, to, n, at);
}

ssize_t read(int fd, void *to, size_t n) {
    if (file_of(fd) && fails(READ)) return -1;
    return REAL(read)(fd, to, n);
}

int fdatasync(int fd) {
    struct stat is;
    struct file *file = file_of(fd);
    int is_folder = folder_inode && !fstat(fd, &is) && is.st_ino == folder_inode;
    if (!file && !is_folder) return REAL(fdatasync)(fd);
    if (fails(SYNC)) {
        if (file) lose_waiting(file, content(fd));
        errno = planned_error;
        return -1;
    }
    for (int i = 0; is_folder && i < n_names; i++) names[i].durable = names[i].now;
    if (file) {
        struct bytes now = content(fd);
        for (size_t at = 0; at < now.n; at += SECTOR)
            if (is_lost(file, at)) sector_of(file->durable, at, now.at + at);
        free(file->durable.at);
        file->durable = now;
    }
    return 0; /* the machine itself keeps running: no need to wait for its disk */
}

int fsync(int fd) { return fdatasync(fd); }
