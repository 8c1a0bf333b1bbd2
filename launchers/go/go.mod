module dunlin

go 1.22
