// Command durable runs an agent on Temporal, on two worker processes, and kills
// one of them with SIGKILL in the middle of the work. The other one goes on: no
// step is lost, and no effect happens twice.
//
// It uses the server at TEMPORAL_ADDRESS. Without one it starts a server that
// keeps its data in memory: the program "temporal" of the PATH, or one that the
// SDK downloads.
//
// -kill 2 kills the other worker and -kill 0 none: the program prints their
// process ids, so that you can kill either. -worker is only a worker.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/durable/temporalagent"
	"github.com/toolmend/toolmend/durable/temporalagent/blobdir"
	"github.com/toolmend/toolmend/middleware"
)

func main() {
	isWorker := flag.Bool("worker", false, "be a worker, until standard input ends")
	dir := flag.String("dir", "", "the `DIRECTORY` of long contents and of the world; none: a temporary one")
	kill := flag.Int("kill", 1, "the `NUMBER` of the worker to kill: 1, 2, or 0 for none")
	id := flag.String("id", fmt.Sprintf("trip-%d", time.Now().Unix()), "the `ID` of the run: to start it again is to attach to it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *isWorker {
		err = work(os.Getenv("TEMPORAL_ADDRESS"), *dir, os.Stdin)
	} else {
		err = run(ctx, os.Stdout, *dir, *id, *kill)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, dir, id string, kill int) (err error) {
	if kill < 0 || kill > 2 {
		return fmt.Errorf("-kill must be 0, 1 or 2, got %d", kill)
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "durable"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	happened, err := newWorld(dir)
	if err != nil {
		return err
	}
	address, stop, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer stop()
	c, err := dial(address)
	if err != nil {
		return err
	}
	defer c.Close()
	var workers []*process
	for n := 1; n <= 2; n++ {
		w, err := startWorker(address, dir)
		if err != nil {
			return err
		}
		defer w.kill()
		workers = append(workers, w)
		fmt.Fprintf(out, "worker %d is process %d\n", n, w.pid())
	}
	blobs, err := blobdir.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		return err
	}
	defer blobs.Close()

	trip, err := temporalagent.Start(ctx, c, temporalagent.Options{ID: id, TaskQueue: taskQueue, Agent: agentName, Blobs: blobs},
		middleware.User("Book me a flight from Oslo to London on the 3rd of December."))
	if err != nil {
		return err
	}
	type end struct {
		state *agentloop.State
		err   error
	}
	over := make(chan end, 1)
	go func() {
		s, err := trip.Wait(ctx)
		over <- end{s, err}
	}()
	watch := &watcher{out: out, world: happened}
	for tick := time.Tick(100 * time.Millisecond); ; {
		if err := watch.show(); err != nil {
			return err
		}
		if watch.seen >= 2 && kill > 0 {
			workers[kill-1].kill()
			fmt.Fprintf(out, "*** worker %d is killed\n", kill)
			kill = 0
		}
		if err := approve(ctx, out, trip); err != nil {
			return err
		}
		select {
		case e := <-over:
			if e.err != nil {
				return e.err
			}
			fmt.Fprintln(out, e.state.Answer())
			return watch.show()
		case <-tick:
		}
	}
}

// approve plays the person who decides.
func approve(ctx context.Context, out io.Writer, trip *temporalagent.Handle) error {
	pending, err := trip.Pending(ctx)
	if err != nil {
		return err
	}
	for _, p := range pending {
		fmt.Fprintf(out, "a person approves %s %s\n", p.Call.Name, p.Call.Arguments)
		if err := trip.Approve(ctx, p.Call.ID); err != nil {
			return err
		}
	}
	return nil
}
