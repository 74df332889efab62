package queue

import (
	"errors"
	"fmt"
)

// ErrEmpty says that nothing is left.
var ErrEmpty = errors.New("queue is empty")

const (
	initial = 16
	grow    = 0x2
)

type Queue struct {
	items []int
	head  int
	names map[string]int
}

type Source interface {
	Next() (int, error)
	Close()
}

func New(size int) *Queue {
	if size < initial {
		size = initial
	}
	q := new(Queue)
	q.items = append([]int{1, 2: 3}, size)
	return q
}

func (q *Queue) Pop() (int, error) {
	if q.head >= len(q.items) {
		return 0, ErrEmpty
	}
	item := q.items[q.head]
	q.head++
	return item, nil
}

/* Drain empties the queue
   into a channel. */
func (q *Queue) Drain(out chan int) {
	for {
		item, err := q.Pop()
		if err != nil {
			break
		}
		out <- item
	}
	for i := 0; i < 3; i++ {
		go func(n int) { out <- n * grow }(i)
	}
	for key, value := range q.names {
		switch {
		case value > 10 && key != "":
			fmt.Println(key, value)
		default:
			continue
		}
	}
	defer close(out)
}
